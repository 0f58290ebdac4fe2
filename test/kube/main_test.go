package kube_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/test/kube"
)

// patience is how long anything may take on a machine that is busy with other things. It is never what is measured.
const patience = 60 * time.Second

// shared are two full clusters that all tests use: tests break the second one, and repair it again.
var shared struct {
	once  sync.Once
	fleet []*kube.Cluster
	err   error
}

func TestMain(m *testing.M) {
	if os.Getenv(victimVariable) != "" {
		beTheVictim()
		return
	}
	code := m.Run()
	for _, c := range shared.fleet {
		if err := c.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	if code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

// fleet is the shared clusters, started by the first test that needs them.
func fleet(t *testing.T) (whole, broken *kube.Cluster) {
	t.Helper()
	shared.once.Do(func() {
		shared.fleet, shared.err = kube.StartFleet(context.Background(), []string{"alpha", "beta"}, kube.Options{Log: os.Stderr})
	})
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	t.Cleanup(func() {
		if !t.Failed() {
			return
		}
		for _, c := range shared.fleet {
			where, err := c.KeepLogs(t.Name())
			t.Log(where, err)
		}
	})
	return shared.fleet[0], shared.fleet[1]
}

// namespace makes one for a test, and waits for what pods in it need.
func namespace(t *testing.T, c *kube.Cluster) string {
	t.Helper()
	g := NewWithT(t)
	made := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}
	g.Expect(c.Client().Create(t.Context(), made)).To(Succeed())
	t.Cleanup(func() { _ = c.Client().Delete(context.Background(), made) })
	g.Eventually(func() error {
		return c.Client().Get(t.Context(), client.ObjectKey{Namespace: made.Name, Name: "default"}, &corev1.ServiceAccount{})
	}, patience).Should(Succeed())
	return made.Name
}

// nodes adds nodes for one test only.
func nodes(t *testing.T, c *kube.Cluster, n int, spec kube.NodeSpec) []string {
	t.Helper()
	names, err := c.AddNodes(t.Context(), n, spec)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() {
		if err := c.RemoveNodes(context.Background(), names...); err != nil {
			t.Errorf("clean up: %v", err)
		}
	})
	return names
}

// exists reports whether an object is there; a failure to find out fails the test.
func exists(t *testing.T, c *kube.Cluster, object client.Object) bool {
	t.Helper()
	err := c.Client().Get(t.Context(), client.ObjectKeyFromObject(object), object)
	NewWithT(t).Expect(client.IgnoreNotFound(err)).To(Succeed())
	return err == nil
}

// list reads all objects of a kind in a namespace.
func list[L client.ObjectList](t *testing.T, c *kube.Cluster, into L, namespace string) L {
	t.Helper()
	NewWithT(t).Expect(c.Client().List(t.Context(), into, client.InNamespace(namespace))).To(Succeed())
	return into
}

// mustJSON is for values that cannot fail to encode.
func mustJSON(v any) []byte {
	content, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return content
}
