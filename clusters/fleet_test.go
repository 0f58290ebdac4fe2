package clusters

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	"github.com/plimsoll-dev/plimsoll/clusters/internal/sample"
	"github.com/plimsoll-dev/plimsoll/clusters/kubeconfig"
)

// fleet is a provider under test with everything around it.
type fleet struct {
	*Provider
	t       *testing.T
	g       Gomega
	secrets *fakeSecrets
	aware   *fakeAware
	events  *fakeEvents
	metrics *prometheus.Registry
	log     *syncBuffer
	fence   *switchableFence
	stop    func()
}

// podKind keeps the labels of pods; configMapKind keeps everything.
var (
	podKind = Kind{
		Object:  &corev1.Pod{},
		Keep:    func(from, into client.Object) { into.SetLabels(from.GetLabels()) },
		Indexes: map[string]client.IndexerFunc{"app": func(o client.Object) []string { return []string{o.GetLabels()["app"]} }},
	}
	configMapKind = Kind{Object: &corev1.ConfigMap{}}
)

// newFleet starts a provider with short times that allows servers on this machine.
func newFleet(t *testing.T, edit ...func(*Options)) *fleet {
	t.Helper()
	g := NewWithT(t)
	f := &fleet{
		t: t, g: g, secrets: newFakeSecrets(), aware: newFakeAware(), events: &fakeEvents{}, metrics: prometheus.NewRegistry(),
		log: &syncBuffer{}, fence: &switchableFence{},
	}
	opts := Options{
		Namespace: "plimsoll", Secrets: f.secrets, Scheme: scheme.Scheme, Fence: f.fence,
		Rules:         kubeconfig.Rules{AllowedNetworks: sample.Networks("127.0.0.0/8", "::1/128")},
		Kinds:         []Kind{podKind, configMapKind},
		Access:        []Access{{Resource: "pods", Verbs: []string{"create"}, For: "nothing can be made"}},
		ProbeInterval: 50 * time.Millisecond, ProbeTimeout: 500 * time.Millisecond, RequestTimeout: time.Second, WarmTimeout: time.Second,
		RetryMin: 10 * time.Millisecond, RetryMax: 50 * time.Millisecond,
		Log: slog.New(slog.NewJSONHandler(f.log, nil)), Registerer: f.metrics, Events: f.events, ReservedNames: []string{"hub"},
	}
	for _, e := range edit {
		e(&opts)
	}
	provider, err := New(opts)
	g.Expect(err).NotTo(HaveOccurred())
	f.Provider = provider
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- provider.Start(ctx, f.aware) }()
	f.stop = sync.OnceFunc(func() {
		cancel()
		g.Expect(<-done).To(Succeed())
	})
	t.Cleanup(f.stop)
	t.Cleanup(func() { g.Expect(f.tellsCanary()).To(BeEmpty()) })
	g.Eventually(provider.Synced).Should(BeTrue())
	return f
}

// tellsCanary looks for the canary in everything that the provider shows.
func (f *fleet) tellsCanary() []string {
	var places []string
	families, err := f.metrics.Gather()
	f.g.Expect(err).NotTo(HaveOccurred())
	for place, text := range map[string]string{
		"log": f.log.String(), "statuses": fmt.Sprintf("%+v", f.Statuses()), "events": strings.Join(f.events.all(), "\n"),
		"metrics": fmt.Sprint(families),
	} {
		if strings.Contains(text, sample.Canary) {
			places = append(places, place+": "+text)
		}
	}
	return places
}

// state gives "State/Reason" of a member, "" when there is none.
func (f *fleet) state(name string) func() string {
	return func() string {
		status, ok := f.Status(name)
		if !ok {
			return ""
		}
		return string(status.State) + "/" + status.Reason
	}
}

// condition gives "Status/Reason" of a condition of a member.
func (f *fleet) condition(name, kind string) func() string {
	return func() string {
		status, _ := f.Status(name)
		for _, c := range status.Conditions {
			if c.Type == kind {
				return string(c.Status) + "/" + c.Reason
			}
		}
		return ""
	}
}

func (f *fleet) awaitReady(name string) *Member {
	f.g.Eventually(f.state(name)).Should(Equal("Ready/Ready"))
	var member *Member
	f.g.Eventually(func() (ok bool) { member, ok = f.Member(name); return ok }).Should(BeTrue())
	return member
}

// member gives the member that controllers work on now, nil if there is none.
func (f *fleet) member(name string) *Member {
	member, _ := f.Member(name)
	return member
}

// metric gives the value of the series with these labels, in the form name{a=b,c=d}.
func (f *fleet) metric(series string) func() float64 {
	return func() float64 { return gathered(f.g, f.metrics)[series] }
}

func gathered(g Gomega, registry *prometheus.Registry) map[string]float64 {
	families, err := registry.Gather()
	g.Expect(err).NotTo(HaveOccurred())
	values := map[string]float64{}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, l.GetName()+"="+l.GetValue())
			}
			key := family.GetName() + "{" + strings.Join(labels, ",") + "}"
			values[key] = m.GetGauge().GetValue() + m.GetCounter().GetValue() + float64(m.GetHistogram().GetSampleCount())
		}
	}
	return values
}

// fakeAware remembers who was engaged.
type fakeAware struct {
	mu      sync.Mutex
	fail    error
	engaged map[string][]engaged
}

type engaged struct {
	ctx     context.Context
	cluster cluster.Cluster
}

func newFakeAware() *fakeAware { return &fakeAware{engaged: map[string][]engaged{}} }

func (a *fakeAware) Engage(ctx context.Context, name multicluster.ClusterName, cl cluster.Cluster) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.fail != nil {
		return a.fail
	}
	a.engaged[string(name)] = append(a.engaged[string(name)], engaged{ctx, cl})
	return nil
}

func (a *fakeAware) of(name string) []engaged {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.engaged[name])
}

func (a *fakeAware) failWith(err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.fail = err
}

// members are the different members called name that were ever engaged.
func (a *fakeAware) members(name string) map[cluster.Cluster]bool {
	clusters := map[cluster.Cluster]bool{}
	for _, e := range a.of(name) {
		clusters[e.cluster] = true
	}
	return clusters
}

// live counts the members called name whose context has not ended.
func (a *fakeAware) live(name string) func() int {
	return func() int {
		clusters := map[cluster.Cluster]bool{}
		for _, e := range a.of(name) {
			if e.ctx.Err() == nil {
				clusters[e.cluster] = true
			}
		}
		return len(clusters)
	}
}

// fakeEvents remembers Events as "name Type/Reason: note".
type fakeEvents struct {
	mu    sync.Mutex
	lines []string
}

func (e *fakeEvents) Eventf(regarding, _ runtime.Object, kind, reason, _, note string, args ...any) {
	e.mu.Lock()
	defer e.mu.Unlock()
	secret := regarding.(*corev1.Secret)
	e.lines = append(e.lines, fmt.Sprintf("%s %s/%s: %s", secret.Name, kind, reason, fmt.Sprintf(note, args...)))
}

func (e *fakeEvents) all() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.lines)
}

// with counts the events that begin so.
func (e *fakeEvents) with(prefix string) func() int {
	return func() int {
		n := 0
		for _, line := range e.all() {
			if strings.HasPrefix(line, prefix) {
				n++
			}
		}
		return n
	}
}

// switchableFence lets writes pass until it is shut.
type switchableFence struct {
	mu   sync.Mutex
	shut map[string]bool
}

func (s *switchableFence) BeginWrite(member string) (time.Time, func(), error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.shut[member] {
		return time.Time{}, nil, errors.New("hub-1 owns it")
	}
	return time.Time{}, func() {}, nil
}

func (s *switchableFence) set(member string, shut bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.shut = maps.Clone(s.shut)
	if s.shut == nil {
		s.shut = map[string]bool{}
	}
	s.shut[member] = shut
}

type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}
