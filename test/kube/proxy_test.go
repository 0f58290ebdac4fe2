package kube_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/test/kube"
)

// forEver is a delay that no test waits for.
const forEver = time.Hour

// proxied is a proxy in front of a cluster, and the admin's client by way of it.
func proxied(t *testing.T, c *kube.Cluster, opts kube.ProxyOptions) (*kube.Proxy, client.WithWatch) {
	t.Helper()
	g := NewWithT(t)
	p, err := kube.NewProxy(c, opts)
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(p.Close)
	config, err := clientcmd.RESTConfigFromKubeConfig(p.Kubeconfig(c.Kubeconfig()))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(config.Host).To(Equal(p.URL()))
	made, err := client.NewWithWatch(config, client.Options{Scheme: scheme.Scheme})
	g.Expect(err).NotTo(HaveOccurred())
	return p, made
}

// watchConfigMaps follows those of a namespace until the test ends.
func watchConfigMaps(t *testing.T, c client.WithWatch, ns string) <-chan watch.Event {
	t.Helper()
	stream, err := c.Watch(t.Context(), &corev1.ConfigMapList{}, &client.ListOptions{
		Namespace: ns, Raw: &metav1.ListOptions{FieldSelector: "metadata.name!=kube-root-ca.crt"},
	})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	t.Cleanup(stream.Stop)
	return stream.ResultChan()
}

// about matches a watch event by the name of its object.
func about(name string) func(watch.Event) bool {
	return func(e watch.Event) bool {
		object, ok := e.Object.(client.Object)
		return ok && object.GetName() == name
	}
}

func TestADelayedWatchIsLateWhileGetsAreNot(t *testing.T) {
	g := NewWithT(t)
	c, _ := fleet(t)
	ns := namespace(t, c)
	p, far := proxied(t, c, kube.ProxyOptions{})
	events := watchConfigMaps(t, far, ns)
	g.Expect(far.Create(t.Context(), configMap(ns, "prompt"))).To(Succeed())
	g.Eventually(events, patience).Should(Receive(Satisfy(about("prompt"))))

	p.DelayWatches(forEver)
	g.Expect(far.Create(t.Context(), configMap(ns, "first"))).To(Succeed())
	g.Expect(far.Create(t.Context(), configMap(ns, "second"))).To(Succeed())
	g.Expect(far.Get(t.Context(), client.ObjectKey{Namespace: ns, Name: "second"}, &corev1.ConfigMap{})).To(Succeed())
	direct := watchConfigMaps(t, clientNamed(t, c, "direct/1"), ns)
	g.Expect(far.Create(t.Context(), configMap(ns, "third"))).To(Succeed())
	g.Eventually(direct, patience).Should(Receive(Satisfy(about("third"))))
	g.Expect(events).NotTo(Receive(), "the API server has said it to others")

	p.DelayWatches(0)
	for _, name := range []string{"first", "second", "third"} {
		g.Eventually(events, patience).Should(Receive(Satisfy(about(name))), "in the order in which it was said")
	}
}

func TestAWatchIsDelayedByAtLeastWhatWasAsked(t *testing.T) {
	g := NewWithT(t)
	c, _ := fleet(t)
	ns := namespace(t, c)
	p, far := proxied(t, c, kube.ProxyOptions{})
	const delay = 300 * time.Millisecond
	p.DelayWatches(delay)
	events := watchConfigMaps(t, far, ns)
	begun := time.Now()
	g.Expect(far.Create(t.Context(), configMap(ns, "late"))).To(Succeed())
	g.Eventually(events, patience).Should(Receive(Satisfy(about("late"))))
	g.Expect(time.Now()).To(BeTemporally(">=", begun.Add(delay)))
}

func TestWhatHangsGetsItsAnswerWhenItIsRestored(t *testing.T) {
	g := NewWithT(t)
	c, _ := fleet(t)
	ns := namespace(t, c)
	p, far := proxied(t, c, kube.ProxyOptions{})
	events := watchConfigMaps(t, far, ns)
	p.Hang(func(r *http.Request) bool {
		return strings.HasSuffix(r.URL.Path, "/configmaps") && r.Method == http.MethodGet
	})

	answer := make(chan error, 1)
	go func() { answer <- far.List(t.Context(), &corev1.ConfigMapList{}, client.InNamespace(ns)) }()
	g.Expect(far.List(t.Context(), &corev1.PodList{}, client.InNamespace(ns))).To(Succeed(), "other kinds do not hang")
	g.Expect(far.Create(t.Context(), configMap(ns, "unseen"))).To(Succeed())
	impatient, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	g.Expect(far.List(impatient, &corev1.ConfigMapList{}, client.InNamespace(ns))).To(MatchError(context.DeadlineExceeded))
	g.Expect(answer).NotTo(Receive())
	g.Expect(events).NotTo(Receive(), "a watch that is open falls silent too")

	g.Expect(p.Restore()).To(Succeed())
	g.Eventually(answer, patience).Should(Receive(Succeed()))
	g.Eventually(events, patience).Should(Receive(Satisfy(about("unseen"))))
}

func TestACutBreaksWatchesAndNewConnectionsAreWelcome(t *testing.T) {
	g := NewWithT(t)
	c, _ := fleet(t)
	ns := namespace(t, c)
	p, far := proxied(t, c, kube.ProxyOptions{})
	events := watchConfigMaps(t, far, ns)
	p.Cut()
	g.Eventually(events, patience).Should(BeClosed())
	g.Eventually(func() error { return read(t.Context(), far) }, patience).Should(Succeed())
}

func TestAProxyThatRefusesIsBackAtItsAddressWhenRestored(t *testing.T) {
	g := NewWithT(t)
	c, _ := fleet(t)
	ns := namespace(t, c)
	p, far := proxied(t, c, kube.ProxyOptions{})
	events := watchConfigMaps(t, far, ns)
	p.Refuse()
	p.Refuse()
	g.Eventually(events, patience).Should(BeClosed())
	g.Eventually(func() error { return read(t.Context(), far) }, patience).Should(MatchError(ContainSubstring("connection refused")))
	g.Expect(read(t.Context(), c.Client())).To(Succeed(), "the API server itself answers")

	g.Expect(p.Restore()).To(Succeed())
	g.Expect(p.Restore()).To(Succeed())
	g.Eventually(func() error { return read(t.Context(), far) }, patience).Should(Succeed())
	p.Close()
	g.Expect(p.Restore()).To(Succeed(), "what is closed stays closed")
	g.Eventually(func() error { return read(t.Context(), far) }, patience).ShouldNot(Succeed())
}

func TestProxiesPassForMembersOfTheirOwn(t *testing.T) {
	g := NewWithT(t)
	c, _ := fleet(t)
	key := client.ObjectKey{Name: "kube-system"}
	var real corev1.Namespace
	g.Expect(c.Client().Get(t.Context(), key, &real)).To(Succeed())
	for _, uid := range []string{"uid-of-one", "uid-of-another"} {
		p, far := proxied(t, c, kube.ProxyOptions{ClusterUID: uid})
		var seen corev1.Namespace
		g.Expect(far.Get(t.Context(), key, &seen)).To(Succeed())
		g.Expect(string(seen.UID)).To(Equal(uid))
		seen.UID = real.UID
		g.Expect(seen).To(Equal(real), "all else is as it was")

		config, err := clientcmd.RESTConfigFromKubeConfig(p.Kubeconfig(c.Kubeconfig()))
		g.Expect(err).NotTo(HaveOccurred())
		metadata, err := metadata.NewForConfig(config)
		g.Expect(err).NotTo(HaveOccurred())
		partial, err := metadata.Resource(corev1.SchemeGroupVersion.WithResource("namespaces")).Get(t.Context(), key.Name, metav1.GetOptions{})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(string(partial.UID)).To(Equal(uid))
	}
}

func TestAProxyCanBeGivenFaultsOfATestsOwn(t *testing.T) {
	g := NewWithT(t)
	c, _ := fleet(t)
	_, far := proxied(t, c, kube.ProxyOptions{Name: "teapot", Intercept: func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.Contains(r.URL.Path, "/secrets") {
				http.Error(w, "no", http.StatusTeapot)
				return
			}
			next.ServeHTTP(w, r)
		})
	}})
	g.Expect(far.List(t.Context(), &corev1.SecretList{})).To(MatchError(ContainSubstring("no")))
	g.Expect(read(t.Context(), far)).To(Succeed())
}

func TestAProxyInFrontOfAnAPIServerThatIsGoneBreaksTheConnection(t *testing.T) {
	g := NewWithT(t)
	_, c := fleet(t)
	_, far := proxied(t, c, kube.ProxyOptions{})
	g.Expect(c.Kill(kube.APIServer)).To(Succeed())
	err := read(t.Context(), far)
	g.Expect(err).To(HaveOccurred())
	g.Expect(err).NotTo(MatchError(context.DeadlineExceeded))
	g.Expect(c.Revive(t.Context(), kube.APIServer)).To(Succeed())
	g.Eventually(func() error { return read(t.Context(), far) }, patience).Should(Succeed())
}

func TestWhatIsNoKubeconfigHasNoWayThroughAProxy(t *testing.T) {
	c, _ := fleet(t)
	p, _ := proxied(t, c, kube.ProxyOptions{})
	NewWithT(t).Expect(p.Kubeconfig([]byte("{no yaml"))).To(BeNil())
}
