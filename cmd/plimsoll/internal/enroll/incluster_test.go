package enroll

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/plimsoll-dev/plimsoll/clusters"
	"github.com/plimsoll-dev/plimsoll/hub/confine"
)

// What register uses as it is because somebody else made it must not be the hub's own, nor may the account be one of another registration.
func TestTheHubsOwnClusterSharesNoAccountAndNoRight(t *testing.T) {
	own := inMember(t, func(r *Registration) { r.InCluster = true })
	base := filepath.Join("..", "..", "..", "..", "deploy", "kustomize", "base")
	for _, file := range []string{"rbac.yaml", "registrations.yaml", "state.yaml"} {
		text, err := os.ReadFile(filepath.Join(base, file))
		if err != nil {
			t.Fatal(err)
		}
		for _, document := range strings.Split(string(text), "\n---\n") {
			made := &unstructured.Unstructured{}
			if err := yaml.Unmarshal([]byte(document), &made.Object); err != nil {
				t.Fatal(err)
			}
			name := describe(schema.GroupVersionResource{Resource: strings.ToLower(made.GetKind()) + "s"}, made.GetNamespace(), made.GetName())
			if own[name].body != nil && made.GetKind() != "Namespace" {
				t.Errorf("%s is the hub's own, and part of a registration", name)
			}
		}
	}
	shared := map[string]bool{
		"lease/plimsoll-system/plimsoll-identity": true, "mutatingwebhookconfiguration/plimsoll": true, "namespace/plimsoll-system": true, "priorityclass/plimsoll-probe": true,
	}
	for others, set := range map[string]func(*Registration){
		"of another cluster":   nil,
		"of a tenant":          func(r *Registration) { r.Name, r.Namespaces = "in-cluster", []string{"shop"} },
		"of a tenant that may": func(r *Registration) { r.Name, r.Namespaces, r.InCluster = "in-cluster", []string{"shop"}, true },
	} {
		for name := range inMember(t, set) {
			if own[name].body != nil && !shared[name] {
				t.Errorf("%s is also %s", name, others)
			}
		}
	}
	for _, token := range []string{"", TokenSecret} {
		if name := (Registration{InCluster: true}).names().token; name == token {
			t.Errorf("the Secret of its token is called %q", name)
		}
	}
	if name := (Registration{InCluster: true}).names().webhook; name != WebhookConfiguration {
		t.Errorf("the hub keeps %s current, and not %s", WebhookConfiguration, name)
	}
}

func TestAllButSharedObjectsOfAFormerRegistrationGo(t *testing.T) {
	e := &enrolment{Registration: Registration{Name: "in-cluster", Namespace: RegistrationNamespace, MemberNamespace: DefaultNamespace, InCluster: true}}
	objects, err := e.former()
	former := keyed(t, objects, err)
	for _, name := range []string{
		"serviceaccount/plimsoll-system/plimsoll-hub", "clusterrolebinding/plimsoll-member", "secret/plimsoll-system/plimsoll-hub-token",
		"validatingadmissionpolicy/plimsoll-hub-kinds",
	} {
		if former[name].body == nil {
			t.Errorf("%s stays", name)
		}
	}
	for _, name := range []string{"namespace/plimsoll-system", "lease/plimsoll-system/" + clusters.IdentityLease, "mutatingwebhookconfiguration/plimsoll"} {
		if former[name].body != nil {
			t.Errorf("%s goes", name)
		}
	}
}

func TestThePoliciesOfTheHubsOwnClusterKeepTheAccountFromTheKeys(t *testing.T) {
	for namespace, set := range map[string]func(*Registration){
		"plimsoll-members": func(r *Registration) { r.InCluster = true },
		"hub":              func(r *Registration) { r.InCluster, r.HubNamespace = true, "hub" },
	} {
		for _, policy := range []string{"kinds", "webapps"} {
			o := inMember(t, set)["validatingadmissionpolicy/"+InClusterAccount+"-"+policy]
			text, err := json.Marshal(o.body)
			if err != nil || !strings.Contains(string(text), `!= \"`+namespace+`\"`) {
				t.Errorf("policy %s does not exclude %s: %s, %v", policy, namespace, text, err)
			}
		}
	}
	another := inMember(t, func(r *Registration) { r.HubNamespace = "hub" })["validatingadmissionpolicy/"+Account+"-webapps"]
	if text, err := json.Marshal(another.body); err != nil || strings.Contains(string(text), `\"hub\"`) {
		t.Errorf("another cluster has no namespace of the hub: %s, %v", text, err)
	}
}

// clusterWith serves objects at their paths.
func clusterWith(t *testing.T, side string, objects map[string]any) *Cluster {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		o, ok := objects[r.URL.Path]
		if status, failed := o.(*apierrors.StatusError); failed || !ok {
			if !ok {
				status = apierrors.NewNotFound(schema.GroupResource{}, r.URL.Path)
			}
			w.WriteHeader(int(status.ErrStatus.Code))
			o = status.Status()
		}
		_ = json.NewEncoder(w).Encode(o)
	}))
	t.Cleanup(server.Close)
	c, err := Connect(side, &Context{Name: side, Config: &rest.Config{Host: server.URL}})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestTheHubsOwnClusterIsRecognised(t *testing.T) {
	const path = "/api/v1/namespaces/kube-system"
	system := func(uid types.UID) map[string]any {
		return map[string]any{path: corev1.Namespace{TypeMeta: typeMeta("v1", "Namespace"), ObjectMeta: metav1.ObjectMeta{Name: "kube-system", UID: uid}}}
	}
	refused := clusterWith(t, SideHub, map[string]any{path: apierrors.NewForbidden(schema.GroupResource{Resource: "namespaces"}, "kube-system", nil)})
	elsewhere := clusterWith(t, SideMember, nil)
	for name, c := range map[string]struct {
		hub, member *Cluster
		want        bool
	}{
		"the same UID":                          {clusterWith(t, SideHub, system("a")), elsewhere, true},
		"another UID":                           {clusterWith(t, SideHub, system("b")), elsewhere, false},
		"nobody may see it":                     {refused, elsewhere, false},
		"nobody may see it, of the same server": {refused, refused, true},
	} {
		e := &enrolment{hub: c.hub, member: c.member}
		if is, err := e.ownCluster(t.Context(), "a"); err != nil || is != c.want {
			t.Errorf("%s: %v, %v", name, is, err)
		}
	}
	e := &enrolment{hub: elsewhere, member: elsewhere}
	if _, err := e.ownCluster(t.Context(), "a"); err == nil {
		t.Error("a cluster without kube-system is one")
	}
}

func TestAKindIsInstalledForTheAccountThatTheHubHas(t *testing.T) {
	account := func(labels map[string]string) map[string]any {
		return map[string]any{"/api/v1/namespaces/plimsoll-system/serviceaccounts/" + InClusterAccount: corev1.ServiceAccount{
			TypeMeta: typeMeta("v1", "ServiceAccount"), ObjectMeta: metav1.ObjectMeta{Name: InClusterAccount, Labels: labels},
		}}
	}
	own := account(map[string]string{managedByLabel: fieldManager})
	for name, c := range map[string]struct {
		there   map[string]any
		secrets []string
		want    string // name of the subject, or a part of the error
	}{
		"another cluster":               {nil, []string{AllNamespaces}, Account},
		"an account of somebody else's": {account(nil), nil, Account},
		"the hub's own":                 {own, []string{"shop"}, InClusterAccount},
		"with all Secrets":              {own, []string{AllNamespaces}, "name other namespaces"},
		"with those of the hub":         {own, []string{"shop", DefaultNamespace}, "name other namespaces"},
		"with registrations":            {own, []string{RegistrationNamespace}, "name other namespaces"},
	} {
		w := Installed{Kind: webApps(), Namespace: DefaultNamespace, Secrets: c.secrets}
		got := ""
		if err := w.findAccount(t.Context(), clusterWith(t, SideMember, c.there)); err != nil {
			got = err.Error()
		} else {
			got = w.subjects()[0].Name
		}
		if !strings.HasSuffix(got, c.want) {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// Objects that are applied over those of register keep its label: a hub that was installed after the registration has such an account.
func TestAnAccountAsWhichTheHubRunsStaysWhoeverCreatedIt(t *testing.T) {
	account, err := serviceAccount(DefaultNamespace, Account)
	if err != nil {
		t.Fatal(err)
	}
	hub := appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "plimsoll-hub"}}
	hub.Spec.Template.Spec.ServiceAccountName = Account
	for want, running := range map[string][]appsv1.Deployment{Kept: {{}, hub}, Deleted: {{}}} {
		e := &enrolment{member: clusterWith(t, SideMember, map[string]any{
			"/apis/apps/v1/namespaces/plimsoll-system/deployments":          appsv1.DeploymentList{TypeMeta: typeMeta("apps/v1", "DeploymentList"), Items: running},
			"/api/v1/namespaces/plimsoll-system/serviceaccounts/" + Account: account.body.Object,
		})}
		if change, err := e.removeAccount(t.Context(), account); err != nil || change.Action != want {
			t.Errorf("%+v, %v, want it %s", change, err, want)
		}
	}
}

func TestADryRunShowsTheAccountOfTheHubsOwnCluster(t *testing.T) {
	hub := load(t, kubeconfigFile(t, nil), "hub")
	prod := load(t, kubeconfigFile(t, nil), "prod")
	for account, member := range map[string]*Context{InClusterAccount: hub, Account: prod} {
		r := Registration{Name: "one", Namespace: RegistrationNamespace, MemberNamespace: DefaultNamespace, TokenDuration: confine.DefaultTokenLife}
		text, err := Render(r, member, hub)
		if err != nil || !strings.Contains(string(text), "kind: ServiceAccount\nmetadata:\n  labels:\n    app.kubernetes.io/managed-by: plimsoll-cli\n  name: "+account+"\n") {
			t.Errorf("%s: %v\n%s", account, err, text)
		}
	}
}
