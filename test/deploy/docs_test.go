package deploy

import (
	"bytes"
	"context"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/hub/config"
	"github.com/plimsoll-dev/plimsoll/test/fleet"
	"github.com/plimsoll-dev/plimsoll/test/kube"
)

// fenced finds the blocks of a page, also those that are indented within a list, with the name of their language.
var fenced = regexp.MustCompile("(?ms)^( *)```([a-z]*)\n(.*?)^ *```$")

// begins is how a command begins that is shown without a language.
var begins = regexp.MustCompile(`(?m)^(\$ |(kubectl|plimsoll|helm|make|go|curl|git|kind) [a-z-])`)

// block is one of them that is for a shell. What a console shows is commands behind a prompt, and what they print.
type block struct {
	console bool
	text    string
}

// blocks are those of a page, by its path from the repository's root.
func blocks(t *testing.T, page string) []block {
	t.Helper()
	found := blocksIn(pageText(t, page))
	if len(found) == 0 {
		t.Fatalf("%s has no commands", page)
	}
	return found
}

func pageText(t *testing.T, page string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(page)))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// blocksIn are those of a text.
func blocksIn(text string) (found []block) {
	for _, match := range fenced.FindAllStringSubmatch(text, -1) {
		one := block{text: strings.TrimPrefix(strings.ReplaceAll("\n"+match[3], "\n"+match[1], "\n"), "\n")}
		switch match[2] {
		case "sh", "bash", "shell", "zsh":
		case "console", "":
			if match[2] == "" && !begins.MatchString(one.text) {
				continue // output, or a picture
			}
			if one.console = strings.Contains("\n"+one.text, "\n$ "); one.console {
				one.text = typed(one.text)
			}
		default:
			continue
		}
		found = append(found, one)
	}
	return found
}

// typed are the commands of a console: lines behind a prompt, and what they go on with after a backslash or a pipe.
func typed(console string) string {
	var commands strings.Builder
	goesOn := false
	for line := range strings.Lines(console) {
		command, prompted := strings.CutPrefix(line, "$ ")
		if !prompted && !goesOn {
			continue
		}
		commands.WriteString(command)
		end := strings.TrimSpace(command)
		goesOn = strings.HasSuffix(end, "\\") || strings.HasSuffix(end, "|")
	}
	return commands.String()
}

// console are the commands of a page's consoles, but for what is left out; docs/install.md is run by a test that has a hub.
func console(t *testing.T, page string) (commands []string) {
	t.Helper()
	for _, one := range blocks(t, page) {
		if _, reason := reasonOf(page, one); one.console && (reason == "" || page == "docs/install.md") {
			commands = append(commands, one.text)
		}
	}
	return commands
}

// runHere are the pages whose blocks the test below runs, but for those in leftOut.
var runHere = []string{
	"README.md", "docs/kind.md", "docs/operate.md", "docs/install.md", "docs/upgrade.md", "docs/migrate.md", "docs/webapp.md", "docs/cli.md",
	"docs/api.md",
}

// The commands of these pages are run in their order, as they are written, by a person with two clusters, of which the hub
// cluster is the current context: the hub's pods are simulated, everything else is real.
func TestTheCommandsOfTheDocumentationDoWhatTheySay(t *testing.T) {
	d := newDesk(t)
	// The README's, and back to nothing.
	for _, shown := range console(t, "README.md") {
		d.shell("README.md", shown)
	}
	d.get("hub", &corev1.Secret{}, fleet.Registrations, "prod-eu")
	d.run("docs/cli.md")
	d.expectGone("hub", &corev1.Secret{}, fleet.Registrations, "prod-eu")
	d.shell("the end of README.md", "helm uninstall plimsoll -n plimsoll-system && kubectl delete namespace plimsoll-system --wait")
	d.awaitGone("prod-eu", &corev1.Namespace{}, Namespace)

	d.run("docs/kind.md")
	d.get("hub", &corev1.Secret{}, fleet.Registrations, "prod-eu")
	d.get("prod-eu", &appsv1.Deployment{}, "shop", "web")
	d.get("hub", &corev1.Secret{}, fleet.Registrations, "in-cluster")
	d.shell("the end of docs/kind.md", "kubectl --context prod-eu delete namespace shop --wait && plimsoll unregister prod-eu --context prod-eu --hub-context hub && "+
		"plimsoll unregister in-cluster --context hub --hub-context hub && "+
		"helm uninstall plimsoll -n plimsoll-system && kubectl delete namespace plimsoll-system --wait")
	d.awaitGone("prod-eu", &corev1.Namespace{}, Namespace)

	d.run("docs/install.md")
	d.get("hub", &appsv1.Deployment{}, Namespace, "plimsoll-hub")
	d.get("hub", &corev1.ConfigMap{}, Namespace, "plimsoll-api-ca")
	var registration corev1.Secret
	d.get("hub", &registration, fleet.Registrations, "prod-eu")
	registered, err := clientcmd.Load(registration.Data["kubeconfig"])
	if err != nil || registration.Labels["plimsoll.dev/member"] != "true" || registered.Contexts[registered.CurrentContext] == nil || registered.AuthInfos["hub"].Token == "" {
		t.Errorf("the registration that was made by hand: %v, labels %v", err, registration.Labels)
	}

	for _, one := range blocks(t, "docs/api.md") {
		if strings.HasPrefix(strings.TrimSpace(one.text), "kubectl ") {
			d.shell("docs/api.md", one.text)
		}
	}
	var before, after corev1.Secret
	d.get("hub", &before, Namespace, "plimsoll-hub-ca")
	d.run("docs/operate.md")
	d.get("hub", &after, Namespace, "plimsoll-hub-ca")
	d.get("hub", &corev1.Secret{}, fleet.Registrations, "hub")
	d.shell("the end of docs/operate.md", "plimsoll unregister hub --context hub --hub-context hub")
	if !maps.EqualFunc(before.Data, after.Data, bytes.Equal) {
		t.Error("what was restored is not what was there")
	}

	d.run("docs/webapp.md")
	d.shell("what docs/webapp.md promises", "kubectl --context prod-eu get webapps --all-namespaces")

	d.shell("what docs/upgrade.md is about", "kubectl --context prod-eu create namespace sales && "+
		`echo '{"apiVersion":"apps.plimsoll.dev/v1","kind":"WebApp","metadata":{"name":"shop","namespace":"sales"},"spec":{"containers":[{"name":"shop","image":"shop:1"}]}}' | `+
		"kubectl --context prod-eu apply -f -")
	d.run("docs/upgrade.md")
	d.expectGone("hub", &appsv1.Deployment{}, Namespace, "plimsoll-hub")
	d.expectGone("hub", &corev1.Secret{}, fleet.Registrations, "prod-eu")
	d.get("hub", &corev1.Secret{}, Namespace, "plimsoll-hub-ca")

	d.awaitGone("prod-eu", &corev1.Namespace{}, Namespace)

	web := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", Labels: map[string]string{"spotalis.io/enabled": "true"}},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "web"}}},
			},
		},
	}
	predecessor := web.DeepCopy()
	predecessor.Namespace, predecessor.Name, predecessor.Labels = "spotalis-system", "spotalis-controller", nil
	for _, object := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}, web,
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: predecessor.Namespace}}, predecessor,
		&admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "spotalis-mutating-webhook"}},
	} {
		if err := d.clusters["prod-eu"].Client().Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	d.runAll("docs/migrate.md")
	d.get("prod-eu", web, "shop", "web")
	if web.Labels["spotalis.io/enabled"] != "true" || web.Labels["plimsoll.dev/enabled"] != "" {
		t.Errorf("after going there and back the labels are %v", web.Labels)
	}
	var mounted corev1.ConfigMap
	d.get("hub", &mounted, Namespace, "plimsoll-config")
	rolledBack, err := config.Load(writeText(t, mounted.Data["config.yaml"]), podEnvironment)
	if err != nil || rolledBack.Spot.AnnotationPrefix != "spotalis.io" || !rolledBack.Spot.ReadOnly {
		t.Errorf("after rolling back the hub is configured like this: %+v, %v", rolledBack.Spot, err)
	}
}

// desk is where somebody works: two clusters as contexts, and the tools on the path.
type desk struct {
	*testing.T
	clusters map[string]*kube.Cluster
	environ  []string
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	d := &desk{T: t, clusters: map[string]*kube.Cluster{}}
	config := clientcmdapi.NewConfig()
	config.CurrentContext = "hub"
	for _, name := range []string{"hub", "prod-eu"} {
		cluster := kube.New(t, kube.Options{Name: name})
		if _, err := cluster.AddNodes(t.Context(), 2, kube.NodeSpec{Capacity: kube.OnDemand, Pods: 50}); err != nil {
			t.Fatal(err)
		}
		one, err := clientcmd.Load(cluster.Kubeconfig())
		if err != nil {
			t.Fatal(err)
		}
		named := one.Contexts[one.CurrentContext]
		config.Clusters[name], config.AuthInfos[name] = one.Clusters[named.Cluster], one.AuthInfos[named.AuthInfo]
		config.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
		config.Contexts["kind-"+name] = config.Contexts[name] // as kind calls it
		d.clusters[name] = cluster
	}
	t.Cleanup(func() {
		for _, left := range []string{"member.kubeconfig", "member-ca.crt", "plimsoll-ca.crt", "plimsoll-backup.yaml", "plimsoll-backup.yaml.old"} {
			_ = os.Remove(filepath.Join(root, left)) // what commands leave there, and those that failed
		}
	})
	home := t.TempDir()
	file := filepath.Join(home, "kubeconfig")
	if err := clientcmd.WriteToFile(*config, file); err != nil {
		t.Fatal(err)
	}
	testbed, err := kube.BinDir()
	if err != nil {
		t.Fatal(err)
	}
	d.build("helm", home)
	ours := filepath.Join(filepath.Dir(filepath.Dir(testbed)), "bin")
	d.environ = []string{
		"KUBECONFIG=" + file, "HOME=" + home, "PATH=" + strings.Join([]string{home, ours, testbed, os.Getenv("PATH")}, string(os.PathListSeparator)),
	}
	return d
}

// build builds a tool of this module.
func (d *desk) build(tool, into string) {
	d.Helper()
	command := exec.CommandContext(d.Context(), "go", "build", "-o", filepath.Join(into, tool), "helm.sh/helm/v3/cmd/"+tool)
	if said, err := command.CombinedOutput(); err != nil {
		d.Fatalf("build %s: %v\n%s", tool, err, said)
	}
}

// run runs the commands of a page that are for a shell, in their order, but for those that are left out.
func (d *desk) run(page string) {
	d.Helper()
	for _, one := range blocks(d.T, page) {
		if _, reason := reasonOf(page, one); !one.console && reason == "" {
			d.shell(page, one.text)
		}
	}
}

// runAll runs those of its consoles as well.
func (d *desk) runAll(page string) {
	d.Helper()
	for _, one := range blocks(d.T, page) {
		d.shell(page, one.text)
	}
}

// runSection runs all commands below a heading of a page, up to the next heading.
func (d *desk) runSection(page, heading string) {
	d.Helper()
	_, section, there := strings.Cut(pageText(d.T, page), heading+"\n")
	section, _, _ = strings.Cut(section, "\n#")
	if !there || len(blocksIn(section)) == 0 {
		d.Fatalf("%s has no commands below %q", page, heading)
	}
	for _, one := range blocksIn(section) {
		d.shell(page, one.text)
	}
}

// shell runs commands in the repository's root.
func (d *desk) shell(page, text string) {
	d.Helper()
	ctx, cancel := context.WithTimeout(d.Context(), patience)
	defer cancel()
	command := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", text)
	command.Dir, command.Env = root, d.environ
	if said, err := command.CombinedOutput(); err != nil {
		d.Fatalf("%s: %v\n%s\n%s", page, err, text, said)
	}
}

// awaitGone waits for the end of an object; a namespace takes its time, and a person longer to the next page.
func (d *desk) awaitGone(cluster string, object client.Object, name string) {
	d.Helper()
	err := fleet.Await(timeout(d.T, patience), name+" to go", func(ctx context.Context) (bool, error) {
		err := d.clusters[cluster].Client().Get(ctx, client.ObjectKey{Name: name}, object)
		return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
	})
	if err != nil {
		d.Fatal(err)
	}
}

func (d *desk) get(cluster string, object client.Object, namespace, name string) {
	d.Helper()
	if err := d.clusters[cluster].Client().Get(d.Context(), client.ObjectKey{Namespace: namespace, Name: name}, object); err != nil {
		d.Fatal(err)
	}
}

func (d *desk) expectGone(cluster string, object client.Object, namespace, name string) {
	d.Helper()
	err := d.clusters[cluster].Client().Get(d.Context(), client.ObjectKey{Namespace: namespace, Name: name}, object)
	if client.IgnoreNotFound(err) != nil || err == nil {
		d.Errorf("%s/%s is still there: %v", namespace, name, err)
	}
}
