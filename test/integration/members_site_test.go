package integration

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	eventsv1client "k8s.io/client-go/kubernetes/typed/events/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	"github.com/plimsoll-dev/plimsoll/clusters"
	"github.com/plimsoll-dev/plimsoll/clusters/kubeconfig"
	"github.com/plimsoll-dev/plimsoll/test/fleet"
	"github.com/plimsoll-dev/plimsoll/test/kube"
)

const memberPatience = 60 * time.Second

// memberNetworks hold the testbed.
var memberNetworks = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}

// memberSite is a provider of members on one real API server: the hub's, which through a proxy for each member is also
// every member's.
type memberSite struct {
	t         *testing.T
	g         *WithT
	ctx       context.Context
	cluster   *kube.Cluster
	client    client.Client
	namespace string
	provider  *clusters.Provider
	metrics   *prometheus.Registry
	aware     *memberAware
	log       *fleet.LogBuffer
}

// newMemberSite starts a provider with short times in a namespace of its own.
func newMemberSite(t *testing.T, c *kube.Cluster, edit ...func(*clusters.Options)) *memberSite {
	t.Helper()
	g := NewWithT(t)
	g.SetDefaultEventuallyTimeout(memberPatience)
	s := &memberSite{t: t, g: g, ctx: t.Context(), cluster: c, client: c.Client(), metrics: prometheus.NewRegistry(),
		aware: &memberAware{engaged: map[string][]context.Context{}}, log: &fleet.LogBuffer{}}
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "members-"}}
	g.Expect(s.client.Create(s.ctx, ns)).To(Succeed())
	s.namespace = ns.Name
	opts := clusters.Options{
		Namespace: s.namespace, HubConfig: c.Config(), Scheme: scheme.Scheme,
		Fence:         clusters.FenceFunc(func(string) error { return nil }),
		Rules:         kubeconfig.Rules{AllowedNetworks: memberNetworks},
		Kinds:         []clusters.Kind{{Object: &corev1.ConfigMap{}}, {Object: &corev1.Pod{}}},
		ProbeInterval: time.Second, ProbeTimeout: 2 * time.Second, WarmTimeout: 3 * time.Second,
		RetryMin: 50 * time.Millisecond, RetryMax: time.Second,
		Log: slog.New(slog.NewJSONHandler(s.log, nil)), Registerer: s.metrics, Events: s.recorder(),
	}
	for _, e := range edit {
		e(&opts)
	}
	provider, err := clusters.New(opts)
	g.Expect(err).NotTo(HaveOccurred())
	s.provider = provider
	s.run(func(ctx context.Context) error { return provider.Start(ctx, s.aware) })
	return s
}

// run runs f until the test ends, and waits for it.
func (s *memberSite) run(f func(ctx context.Context) error) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- f(ctx) }()
	s.t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			s.t.Error(err)
		}
	})
}

// recorder writes real Events to the hub cluster.
func (s *memberSite) recorder() events.EventRecorder {
	c, err := eventsv1client.NewForConfig(s.cluster.Config())
	s.g.Expect(err).NotTo(HaveOccurred())
	broadcaster := events.NewBroadcaster(&events.EventSinkImpl{Interface: c})
	ctx, cancel := context.WithCancel(context.Background())
	s.g.Expect(broadcaster.StartRecordingToSinkWithContext(ctx)).To(Succeed())
	s.t.Cleanup(func() {
		broadcaster.Shutdown()
		cancel()
	})
	return broadcaster.NewRecorder(scheme.Scheme, "plimsoll-hub")
}

// proxy makes another way to the API server, which passes for the cluster with this UID.
func (s *memberSite) proxy(uid string) *kube.Proxy {
	s.t.Helper()
	proxy, err := kube.NewProxy(s.cluster, kube.ProxyOptions{Name: uid, ClusterUID: uid})
	s.g.Expect(err).NotTo(HaveOccurred())
	s.t.Cleanup(proxy.Close)
	return proxy
}

// kubeconfig leads through proxy, with the admin's token.
func (s *memberSite) kubeconfig(proxy *kube.Proxy) []byte {
	return proxy.Kubeconfig(s.cluster.Kubeconfig())
}

// edited is a kubeconfig with changes.
func (s *memberSite) edited(kubeconfig []byte, edit func(*clientcmdapi.Cluster, *clientcmdapi.AuthInfo)) []byte {
	config, err := clientcmd.Load(kubeconfig)
	s.g.Expect(err).NotTo(HaveOccurred())
	context := config.Contexts[config.CurrentContext]
	edit(config.Clusters[context.Cluster], config.AuthInfos[context.AuthInfo])
	changed, err := clientcmd.Write(*config)
	s.g.Expect(err).NotTo(HaveOccurred())
	return changed
}

// register creates the registration Secret of a member, or changes the kubeconfig in it.
func (s *memberSite) register(name string, kubeconfig []byte) {
	s.t.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: name}}
	err := s.client.Get(s.ctx, client.ObjectKeyFromObject(secret), secret)
	s.g.Expect(client.IgnoreNotFound(err)).To(Succeed())
	secret.Labels = map[string]string{clusters.MemberLabel: "true"}
	secret.Data = nil
	if kubeconfig != nil {
		secret.Data = map[string][]byte{clusters.KubeconfigKey: kubeconfig}
	}
	if err != nil {
		s.g.Expect(s.client.Create(s.ctx, secret)).To(Succeed())
		return
	}
	s.g.Expect(s.client.Update(s.ctx, secret)).To(Succeed())
}

// unregister deletes the registration Secret of a member.
func (s *memberSite) unregister(name string) {
	s.t.Helper()
	s.g.Expect(s.client.Delete(s.ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: name}})).To(Succeed())
}

// state gives "State/Reason" of a member, "" when there is none.
func (s *memberSite) state(name string) func() string {
	return func() string {
		status, ok := s.provider.Status(name)
		if !ok {
			return ""
		}
		return string(status.State) + "/" + status.Reason
	}
}

// accepted gives "Status/Reason" of a member's condition Accepted.
func (s *memberSite) accepted(name string) func() string {
	return func() string {
		status, _ := s.provider.Status(name)
		for _, c := range status.Conditions {
			if c.Type == clusters.ConditionAccepted {
				return string(c.Status) + "/" + c.Reason
			}
		}
		return ""
	}
}

func (s *memberSite) awaitReady(name string) *clusters.Member {
	s.t.Helper()
	s.g.Eventually(s.state(name)).Should(Equal("Ready/Ready"), name)
	member, ok := s.provider.Member(name)
	s.g.Expect(ok).To(BeTrue())
	return member
}

// sees reports that a new object in the API server reaches the member's cache.
func (s *memberSite) sees(member *clusters.Member) {
	s.t.Helper()
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, GenerateName: "news-"}}
	s.g.Expect(s.client.Create(s.ctx, cm)).To(Succeed())
	s.g.Eventually(func() error {
		return member.GetClient().Get(s.ctx, client.ObjectKeyFromObject(cm), &corev1.ConfigMap{})
	}).Should(Succeed(), member.Name())
}

// warnings gives the reasons of the Warning events on the Secret of a member.
func (s *memberSite) warnings(name string) func() ([]string, error) {
	return func() ([]string, error) {
		var list eventsv1.EventList
		if err := s.client.List(s.ctx, &list, client.InNamespace(s.namespace)); err != nil {
			return nil, err
		}
		var reasons []string
		for _, e := range list.Items {
			if e.Regarding.Kind == "Secret" && e.Regarding.Name == name && e.Type == corev1.EventTypeWarning {
				reasons = append(reasons, e.Reason)
			}
		}
		return reasons, nil
	}
}

// metric gives the value of a series in the form name{a=b}.
func (s *memberSite) metric(series string) func() float64 {
	return func() float64 {
		families, err := s.metrics.Gather()
		s.g.Expect(err).NotTo(HaveOccurred())
		for _, family := range families {
			for _, m := range family.GetMetric() {
				var labels []string
				for _, l := range m.GetLabel() {
					labels = append(labels, l.GetName()+"="+l.GetValue())
				}
				if family.GetName()+"{"+strings.Join(labels, ",")+"}" == series {
					return m.GetGauge().GetValue() + m.GetCounter().GetValue()
				}
			}
		}
		return 0
	}
}

// shown is everything that the provider shows of itself.
func (s *memberSite) shown() string {
	families, err := s.metrics.Gather()
	s.g.Expect(err).NotTo(HaveOccurred())
	var list eventsv1.EventList
	s.g.Expect(s.client.List(s.ctx, &list, client.InNamespace(s.namespace))).To(Succeed())
	return fmt.Sprintf("%v\n%+v\n%+v\n%s", families, s.provider.Statuses(), list.Items, s.log.String())
}

// lists matches the requests for lists of a resource, those that come as a watch included.
func lists(resource string) func(*http.Request) bool {
	return func(r *http.Request) bool { return strings.HasSuffix(r.URL.Path, "/"+resource) }
}

// memberAware remembers the contexts that members were engaged with.
type memberAware struct {
	mu      sync.Mutex
	engaged map[string][]context.Context
}

func (a *memberAware) Engage(ctx context.Context, name multicluster.ClusterName, _ cluster.Cluster) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.engaged[name.String()] = append(a.engaged[name.String()], ctx)
	return nil
}

// live reports whether the newest engagement of a member goes on.
func (a *memberAware) live(name string) func() bool {
	return func() bool {
		a.mu.Lock()
		defer a.mu.Unlock()
		n := len(a.engaged[name])
		return n > 0 && a.engaged[name][n-1].Err() == nil
	}
}

// first is the context that a member was engaged with first.
func (a *memberAware) first(name string) context.Context {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.engaged[name][0]
}
