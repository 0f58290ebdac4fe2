package docs

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"log"
	"log/slog"
	"net/netip"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/plimsoll-dev/plimsoll/clusters/kubeconfig"
	"github.com/plimsoll-dev/plimsoll/test/docs/pages"
	"github.com/plimsoll-dev/plimsoll/test/kube"
	"github.com/plimsoll-dev/plimsoll/test/kube/proc"
)

var update = flag.Bool("update", false, "write the code blocks of documents instead of comparing them")

// block is a code block that says of which file it is a copy.
var block = regexp.MustCompile("(?s)<!-- (test/(?:docs/pages|module)/[a-z_./]+) -->\n```([a-z]+)\n(.*?)```\n")

func TestTheCodeOfTheTutorialIsWhatIsCompiledAndRun(t *testing.T) {
	page := filepath.Join(root, "docs", "write-a-reconciler.md")
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	shown := map[string]bool{}
	written := block.ReplaceAllFunc(text, func(found []byte) []byte {
		parts := block.FindSubmatch(found)
		code, err := os.ReadFile(filepath.Join(root, string(parts[1])))
		if err != nil {
			t.Fatal(err)
		}
		shown[filepath.Base(string(parts[1]))] = true
		return []byte("<!-- " + string(parts[1]) + " -->\n```" + string(parts[2]) + "\n" + string(code) + "```\n")
	})
	files, err := filepath.Glob("pages/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if !shown[filepath.Base(file)] {
			t.Errorf("%s is not in the tutorial", file)
		}
	}
	if *update {
		if err := os.WriteFile(page, written, 0o644); err != nil {
			t.Fatal(err)
		}
	} else if string(text) != string(written) {
		t.Errorf("%s shows other code than test/docs/pages: run this test with -update", page)
	}
}

// replicaOf is set in the environment of a process that is a replica of the tutorial's program: it has the kubeconfig of the hub cluster.
const replicaOf = "TUTORIAL_REPLICA_OF"

func TestMain(m *testing.M) {
	path := os.Getenv(replicaOf)
	if path == "" {
		os.Exit(m.Run())
	}
	hub, err := clientcmd.BuildConfigFromFlags("", path)
	if err == nil {
		rules := kubeconfig.Rules{AllowedNetworks: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}
		ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
		defer stop()
		err = pages.Run(ctx, hub, metav1.NamespaceDefault, rules, slog.New(slog.NewJSONHandler(os.Stdout, nil)))
	}
	if err != nil && !errors.Is(err, context.Canceled) {
		log.Fatal(err)
	}
}

// replica is one process of the tutorial's program.
type replica struct {
	*proc.Process
	log string
}

// published are the names of the Pages that it reconciled.
func (r *replica) published() map[string]bool {
	names := map[string]bool{}
	for line := range strings.Lines(r.text()) {
		var said struct{ Msg, Name string }
		if json.Unmarshal([]byte(line), &said) == nil && said.Msg == "published" {
			names[said.Name] = true
		}
	}
	return names
}

func startReplica(t *testing.T, kubeconfig string) *replica {
	t.Helper()
	log := filepath.Join(t.TempDir(), "log")
	p, err := proc.Start(proc.Command{Program: os.Args[0], Env: append(os.Environ(), replicaOf+"="+kubeconfig), Log: log})
	if err != nil {
		t.Fatal(err)
	}
	r := &replica{p, log}
	t.Cleanup(func() {
		_ = p.Kill()
		if t.Failed() {
			t.Log(r.text())
		}
	})
	return r
}

// Two replicas run; one acts, is killed, and the other goes on.
func TestTheTutorialsProgramRunsInEveryMemberAndOneReplicaActs(t *testing.T) {
	g := NewWithT(t)
	g.SetDefaultEventuallyTimeout(time.Minute)
	cluster := kube.New(t, kube.Options{Name: "tutorial", Minimal: true}) // the hub cluster and the one member
	known := runtime.NewScheme()
	g.Expect(errors.Join(clientgoscheme.AddToScheme(known), pages.AddToScheme(known))).To(Succeed())
	c, err := client.New(cluster.Config(), client.Options{Scheme: known})
	g.Expect(err).NotTo(HaveOccurred())
	definition := &unstructured.Unstructured{}
	text, err := os.ReadFile("pages/crd.yaml")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(yaml.Unmarshal(text, definition)).To(Succeed())
	g.Expect(c.Create(t.Context(), definition)).To(Succeed())
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	g.Expect(os.WriteFile(kubeconfig, cluster.Kubeconfig(), 0o600)).To(Succeed())

	first := startReplica(t, kubeconfig)
	g.Expect(c.Create(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "prod-eu", Labels: map[string]string{"plimsoll.dev/member": "true"}},
		Data:       map[string][]byte{"kubeconfig": cluster.Kubeconfig()},
	})).To(Succeed())
	publish := func(name string) {
		page := &pages.Page{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: name}, Spec: pages.PageSpec{Text: "Hello"}}
		g.Eventually(func() error { return c.Create(t.Context(), page.DeepCopyObject().(client.Object)) }).Should(Succeed())
		g.Eventually(func(g Gomega) {
			var made corev1.ConfigMap
			g.Expect(c.Get(t.Context(), client.ObjectKey{Namespace: page.Namespace, Name: name + "-page"}, &made)).To(Succeed())
			g.Expect(made.Data).To(Equal(map[string]string{"index.html": "Hello"}))
			g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(page), page)).To(Succeed())
			g.Expect(page.Status.Length).To(Equal(len("Hello")))
			g.Expect(page.Status.Conditions).To(ContainElement(And(HaveField("Type", "Ready"), HaveField("Status", BeEquivalentTo("True")))))
		}).Should(Succeed())
	}
	publish("hello")
	g.Eventually(first.published).Should(HaveKey("hello"))

	second := startReplica(t, kubeconfig)
	g.Eventually(second.text).Should(ContainSubstring("Lease holder"), "the second has found out who acts")
	g.Eventually(second.text).Should(ContainSubstring(`"state":"Ready"`), "and has all Pages in its caches")
	publish("again")
	g.Eventually(first.published).Should(HaveKey("again"))
	g.Expect(second.published()).To(BeEmpty(), "one acts at a time")
	g.Expect(second.text()).NotTo(ContainSubstring("reconcile failed"), "the other does not even try")

	g.Expect(first.Kill()).To(Succeed())
	publish("after")
	g.Eventually(second.published).Should(HaveKey("after"))
	g.Expect(first.published()).NotTo(HaveKey("after"))
}

// text is all that the replica has said.
func (r *replica) text() string {
	text, _ := os.ReadFile(r.log)
	return string(text)
}
