package docs

import (
	"context"
	"errors"
	"flag"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/plimsoll-dev/plimsoll/clusters"
	"github.com/plimsoll-dev/plimsoll/test/docs/pages"
	"github.com/plimsoll-dev/plimsoll/test/kube"
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

func TestTheTutorialsReconcilerRunsInEveryMember(t *testing.T) {
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

	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		rules := clusters.Rules{AllowedNetworks: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}
		ended <- pages.Run(ctx, cluster.Config(), metav1.NamespaceDefault, rules, slog.New(slog.DiscardHandler))
	}()
	g.Expect(c.Create(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "prod-eu", Labels: map[string]string{"plimsoll.dev/member": "true"}},
		Data:       map[string][]byte{"kubeconfig": cluster.Kubeconfig()},
	})).To(Succeed())
	page := &pages.Page{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "hello"}, Spec: pages.PageSpec{Text: "Hello"}}
	g.Eventually(func() error { return c.Create(t.Context(), page.DeepCopyObject().(client.Object)) }).Should(Succeed())
	g.Eventually(func(g Gomega) {
		var made corev1.ConfigMap
		g.Expect(c.Get(t.Context(), client.ObjectKey{Namespace: page.Namespace, Name: "hello-page"}, &made)).To(Succeed())
		g.Expect(made.Data).To(Equal(map[string]string{"index.html": "Hello"}))
		g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(page), page)).To(Succeed())
		g.Expect(page.Status.Length).To(Equal(len("Hello")))
		g.Expect(page.Status.Conditions).To(ContainElement(And(HaveField("Type", "Ready"), HaveField("Status", BeEquivalentTo("True")))))
	}).Should(Succeed())
	cancel()
	g.Expect(<-ended).To(Or(BeNil(), MatchError(context.Canceled)))
}
