package enroll

import (
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/plimsoll-dev/plimsoll/hub/confine"
)

// Marks around the table in the page.
const (
	objectsPage  = "../../../../docs/install.md"
	objectsBegin = "<!-- made by: go test ./cmd/plimsoll/internal/enroll -run TestThePageListsWhatIsCreated -update -->\n"
	objectsEnd   = "<!-- end of objects -->\n"
)

// TestThePageListsWhatIsCreatedInAMember generates the table of docs/install.md: every object that the commands create in a member, by option.
// Somebody who reviews the rights, or cleans up a member by hand, finds all of them there, and no other.
func TestThePageListsWhatIsCreatedInAMember(t *testing.T) {
	page, err := os.ReadFile(objectsPage)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, begins := strings.Cut(string(page), objectsBegin)
	was, after, ends := strings.Cut(rest, objectsEnd)
	if !begins || !ends {
		t.Fatalf("%s has no table between its marks", objectsPage)
	}
	is := objectsTable(t)
	if *update {
		if err := os.WriteFile(objectsPage, []byte(before+objectsBegin+is+objectsEnd+after), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(is, was); diff != "" {
		t.Errorf("%s (-created +page):\n%s", objectsPage, diff)
	}
}

// registerOptions are the options of register that change what is created in a member, as they are written and as they are read.
var registerOptions = []struct {
	flag string
	set  func(*Registration)
}{
	{"--token-duration 0", func(r *Registration) { r.TokenDuration = 0 }},
	{"--fleet", func(r *Registration) { r.Fleet = true }},
	{"--workload-resources rollouts.argoproj.io", func(r *Registration) { r.WorkloadResources = []string{"rollouts.argoproj.io"} }},
	{"--writes configmaps", func(r *Registration) { r.Writes = []string{"configmaps"} }},
	{"--keeps bundles.example.com", func(r *Registration) { r.Keeps = []string{"bundles.example.com"} }},
	{"--annotation-prefix example.com", func(r *Registration) { r.AnnotationPrefixes = []string{"example.com"} }},
	{"--webhook-url https://plimsoll.example.com", func(r *Registration) { r.WebhookURL = "https://plimsoll.example.com" }},
	{"--in-cluster", func(r *Registration) { r.InCluster, r.HubNamespace = true, DefaultNamespace }},
	{"--tenant-namespaces shop,cart", func(r *Registration) { r.Namespaces = []string{"shop", "cart"} }},
}

// inNoRow are fields of a registration that change no more than names, or nothing in the member.
var inNoRow = []string{"Name", "Namespace", "MemberNamespace", "Server", "CA", "Kinds"}

func TestEveryOptionThatChangesAMemberHasARow(t *testing.T) {
	varied := map[string]bool{}
	for _, option := range registerOptions {
		var r Registration
		r.TokenDuration = confine.DefaultTokenLife
		option.set(&r)
		for i := range reflect.TypeFor[Registration]().NumField() {
			field := reflect.TypeFor[Registration]().Field(i)
			if field.IsExported() && !reflect.ValueOf(r).Field(i).IsZero() != (field.Name == "TokenDuration") {
				varied[field.Name] = true
			}
		}
	}
	for i := range reflect.TypeFor[Registration]().NumField() {
		if field := reflect.TypeFor[Registration]().Field(i); field.IsExported() && varied[field.Name] == slices.Contains(inNoRow, field.Name) {
			t.Errorf("Registration.%s: is an option with it in the table: %v", field.Name, varied[field.Name])
		}
	}
	renamed := inMember(t, func(r *Registration) { r.MemberNamespace = "hub" })
	var names []string
	for _, name := range namesOf(inMember(t, nil)) {
		names = append(names, strings.Replace(name, "/"+DefaultNamespace, "/hub", 1))
	}
	slices.Sort(names)
	if diff := cmp.Diff(names, namesOf(renamed)); diff != "" {
		t.Errorf("--member-namespace does not only change the namespace:\n%s", diff)
	}
}

// objectsTable is one row for each command and option.
func objectsTable(t *testing.T) string {
	t.Helper()
	var text strings.Builder
	text.WriteString("\n| command | creates in the member | changes |\n|---|---|---|\n")
	plain := inMember(t, nil)
	fmt.Fprintf(&text, "| `register prod-eu` | %s | |\n", listed(plain, func(string) bool { return true }))
	for _, option := range registerOptions {
		with := inMember(t, option.set)
		own := func(name string) bool { return plain[name].body == nil }
		changed := func(name string) bool {
			return plain[name].body != nil && !equality.Semantic.DeepEqual(plain[name].body.Object, with[name].body.Object)
		}
		switch {
		case slices.ContainsFunc(namesOf(plain), func(name string) bool { return with[name].body == nil }): // others take the place of those
			fmt.Fprintf(&text, "| `register prod-eu %s` | instead: %s | |\n", option.flag, listed(with, func(string) bool { return true }))
		default:
			fmt.Fprintf(&text, "| `… %s` | %s | %s |\n", option.flag, listed(with, own), listed(with, changed))
		}
	}
	webApps := Installed{Kind: webApps(), Namespace: DefaultNamespace}
	basic := byName(t, webApps)
	fmt.Fprintf(&text, "| `webapps install prod-eu` | %s | |\n", listed(basic, func(string) bool { return true }))
	for _, secrets := range [][]string{{"shop"}, {AllNamespaces}} {
		webApps.Secrets = secrets
		with := byName(t, webApps)
		fmt.Fprintf(&text, "| `… --secrets %s` | %s | %s |\n", strings.ReplaceAll(secrets[0], "*", "'*'"), listed(with, func(name string) bool { return basic[name].body == nil }),
			listed(with, func(name string) bool {
				return basic[name].body != nil && !equality.Semantic.DeepEqual(basic[name].body.Object, with[name].body.Object)
			}))
	}
	return text.String() + "\n"
}

// inMember are the objects that register creates in a member, by their names.
func inMember(t *testing.T, set func(*Registration)) map[string]object {
	t.Helper()
	r := Registration{
		Name: "prod-eu", Namespace: RegistrationNamespace, MemberNamespace: DefaultNamespace, TokenDuration: confine.DefaultTokenLife, Kinds: []Kind{webApps()},
	}
	if set != nil {
		set(&r)
	}
	objects, err := memberObjects(r, r.TokenDuration == 0)
	return keyed(t, objects, err)
}

func byName(t *testing.T, w Installed) map[string]object {
	t.Helper()
	objects, err := w.objects(nil)
	return keyed(t, objects, err)
}

func keyed(t *testing.T, objects []object, err error) map[string]object {
	t.Helper()
	if err != nil || len(objects) == 0 {
		t.Fatalf("%d objects, %v", len(objects), err)
	}
	all := map[string]object{}
	for _, o := range objects {
		all[o.String()] = o
	}
	return all
}

func namesOf(all map[string]object) (names []string) {
	for name := range all {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// listed are the names of those that are wanted, or that there are none.
func listed(all map[string]object, wanted func(name string) bool) string {
	var some []string
	for _, name := range namesOf(all) {
		if wanted(name) {
			some = append(some, "`"+name+"`")
		}
	}
	if len(some) == 0 {
		return "nothing"
	}
	return strings.Join(some, ", ")
}
