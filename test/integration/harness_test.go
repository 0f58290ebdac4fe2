package integration

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/hub"
	"github.com/plimsoll-dev/plimsoll/hub/config"
	"github.com/plimsoll-dev/plimsoll/reconcile/webapp"
	"github.com/plimsoll-dev/plimsoll/test/fleet"
	"github.com/plimsoll-dev/plimsoll/test/kube"
)

// patience is how long one step may take on a machine that is busy with other things. It is never what is tested.
const patience = 90 * time.Second

// quick are settings with which nobody has to wait for long.
var quick = fleet.Settings{
	"controller.resyncPeriod": "5s", "spot.moveCooldown": "1s", "log.level": "debug",
	"leaderElection.leaseDuration": "5s", "leaderElection.renewDeadline": "3s", "leaderElection.retryPeriod": "500ms",
}

// startFleet starts a fleet with these members, registered, for a test and what runs within it.
func startFleet(t *testing.T, members ...string) *fleet.Fleet {
	t.Helper()
	return startFleetWith(t, fleet.Options{Members: members})
}

// startFleetWith is startFleet with other options.
func startFleetWith(t *testing.T, options fleet.Options) *fleet.Fleet {
	t.Helper()
	f, err := fleet.Start(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			for _, m := range f.Members {
				where, err := m.Cluster.KeepLogs(t.Name())
				t.Log("logs are kept in", where, err)
			}
		}
		if err := f.Stop(); err != nil {
			t.Error(err)
		}
	})
	if err := f.Register(t.Context(), f.Members...); err != nil {
		t.Fatal(err)
	}
	return f
}

// insideHub is a replica that runs in the test's own process, where the race detector sees it.
type insideHub struct {
	*fleet.Replica
	*fleet.API

	fleet *fleet.Fleet
	log   *hubLog
	end   context.CancelFunc
	ended chan error
}

// startHub starts a replica and waits until it owns the members. It is stopped with the test, if it was not before.
func startHub(t *testing.T, f *fleet.Fleet, name string, settings ...fleet.Settings) *insideHub {
	t.Helper()
	return startHubWith(t, f, name, nil, settings...)
}

// startHubWith is startHub with further options of the hub.
func startHubWith(t *testing.T, f *fleet.Fleet, name string, options []hub.Option, settings ...fleet.Settings) *insideHub {
	t.Helper()
	all := fleet.Settings{}
	for _, some := range append([]fleet.Settings{quick}, settings...) {
		for key, value := range some {
			all[key] = value
		}
	}
	replica, err := f.NewReplica(name, all)
	if err != nil {
		t.Fatal(err)
	}
	config, err := config.Load(replica.ConfigFile, nil)
	if err != nil {
		t.Fatal(err)
	}
	log := &hubLog{t: t, name: name}
	ctx, cancel := context.WithCancel(context.Background())
	made, err := hub.New(ctx, config, append([]hub.Option{
		hub.WithLog(hub.NewLog(log, config.Log.Level)), hub.WithEnvironment(nil), hub.WithController(webapp.Module()),
	}, options...)...)
	if err != nil {
		cancel()
		t.Fatal(err)
	}
	h := &insideHub{Replica: replica, fleet: f, log: log, end: cancel, ended: make(chan error, 1)}
	go func() { h.ended <- made.Run(ctx) }()
	f.Balancer.Add(replica.Webhook)
	t.Cleanup(func() {
		h.stop(t)
		log.keep()
	})
	if h.API, err = replica.Connect(); err != nil {
		t.Fatal(err)
	}
	if err := h.AwaitMembers(t.Context(), f.Members...); err != nil {
		t.Fatal(err)
	}
	return h
}

// stop ends the replica in order; that it has ended before is no error.
func (h *insideHub) stop(t *testing.T) {
	t.Helper()
	if h.end == nil {
		return
	}
	h.end()
	h.end = nil
	h.fleet.Balancer.Remove(h.Webhook)
	if h.API != nil {
		h.Close()
	}
	if err := <-h.ended; err != nil {
		t.Errorf("hub %s: %v", h.Name, err)
	}
}

// hubLog collects what a replica says, and is kept when its test fails.
type hubLog struct {
	t    *testing.T
	name string

	mu   sync.Mutex
	text bytes.Buffer
}

// Write takes a line of the log.
func (l *hubLog) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(line)
}

// count returns how many lines have all of these texts.
func (l *hubLog) count(texts ...string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := 0
	for line := range bytes.Lines(l.text.Bytes()) {
		if !slices.ContainsFunc(texts, func(text string) bool { return !bytes.Contains(line, []byte(text)) }) {
			n++
		}
	}
	return n
}

// keep puts the log beside those of the clusters.
func (l *hubLog) keep() {
	if !l.t.Failed() {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	path := filepath.Join("..", "..", "build", "logs", l.name+".log")
	err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, l.text.Bytes(), 0o600))
	l.t.Log("the hub's log is kept in", path, err)
}

// placing is one spec: a namespace in a member, and the hub that places pods in it.
type placing struct {
	*WithT

	t         *testing.T
	ctx       context.Context
	hub       *insideHub
	member    *fleet.Member
	namespace string
	mark      kube.Mark // of the member's audit log, when the spec began
}

// place begins a spec in a namespace of its own with these labels.
func place(t *testing.T, h *insideHub, m *fleet.Member, labels map[string]string) *placing {
	t.Helper()
	return placeFor(t, h, m, labels, 2*patience)
}

// placeFor is place for a spec that may take so long.
func placeFor(t *testing.T, h *insideHub, m *fleet.Member, labels map[string]string, limit time.Duration) *placing {
	t.Helper()
	g := NewWithT(t)
	g.SetDefaultEventuallyTimeout(limit / 2)
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	t.Cleanup(cancel)
	namespace, err := m.NewNamespace(ctx, "spot", labels)
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { _ = m.DeleteNamespace(context.Background(), namespace) })
	mark, err := m.Cluster.Audit().Mark()
	g.Expect(err).NotTo(HaveOccurred())
	return &placing{WithT: g, t: t, ctx: ctx, hub: h, member: m, namespace: namespace, mark: mark}
}

// create makes a workload.
func (p *placing) create(object client.Object) *fleet.Workload {
	p.t.Helper()
	w, err := p.member.Create(p.ctx, object)
	p.Expect(err).NotTo(HaveOccurred())
	return w
}

// ready waits for that many ready replicas.
func (p *placing) ready(w *fleet.Workload, replicas int) fleet.Mix {
	p.t.Helper()
	mix, err := w.AwaitReady(p.ctx, replicas)
	p.Expect(err).NotTo(HaveOccurred())
	return mix
}

// exactly expects the formula's mix of ready replicas, at once and without any eviction in the namespace.
func (p *placing) exactly(w *fleet.Workload, replicas, percent, floor int) {
	p.t.Helper()
	placed := p.placed(w, replicas, percent, floor)
	p.settle(w, replicas)
	if placed {
		p.Expect(p.evictions()).To(BeEmpty())
	} else { // the last of the moves that were needed may just have ended
		p.remark()
	}
}

// placed expects the formula's mix of ready replicas at once, and reports whether it was reached so.
//
// Pods that were created without the hub's decision, because the machine was too busy for the webhook's time-out, say nothing
// about placement, and neither do those about which the hub had to decide before it knew enough: where there are some, the mix may take
// moves, and evictions are counted from then on.
func (p *placing) placed(w *fleet.Workload, replicas, percent, floor int) bool {
	p.t.Helper()
	spot, onDemand := fleet.Want(replicas, percent, floor)
	if !p.decided(w, fleet.Mix{Spot: spot, OnDemand: onDemand, Ready: replicas}) {
		p.mixed(w, replicas, percent, floor)
		p.remark()
		return false
	}
	return true
}

// decided waits until the replicas of a mix are ready. It expects the mix and reports true, unless the machine was too slow for the
// hub's decision on some pods since the spec began: their capacity says nothing about the hub.
func (p *placing) decided(w *fleet.Workload, mix fleet.Mix) bool {
	p.t.Helper()
	got := p.ready(w, mix.Ready)
	if unsure := p.unsure(); unsure > 0 {
		p.t.Logf("the machine was too slow for the hub's decision on %d pods of namespace %s; %s is %s for %s", unsure, p.namespace, w, got, mix)
		return false
	}
	p.Expect(got).To(Equal(mix), func() string { return "the pods by slot:\n" + strings.Join(p.bySlot(w), "\n") })
	return true
}

// bySlot describes the workload's pods, in the order of their slots: what the hub decided for each, and where it is.
func (p *placing) bySlot(w *fleet.Workload) []string {
	p.t.Helper()
	var described []string
	for _, pod := range p.pods(w) {
		described = append(described, fmt.Sprintf("slot %4s: pod %s of %s, node selector %v, on node %s", pod.Labels[fleet.Keys.Slot()], pod.Name,
			pod.CreationTimestamp.UTC().Format(time.TimeOnly), pod.Spec.NodeSelector, pod.Spec.NodeName))
	}
	slices.Sort(described)
	return described
}

// undecided counts the pods that were created without a decision since the spec began, by the words of those who let them
// through: the API server where the webhook did not answer in time, and the hub where it could not read an owner in time.
func (p *placing) undecided() int {
	p.t.Helper()
	return len(p.audited(kube.OnResource("pods"), kube.ByVerb("create"), kube.WebhookSkipped)) +
		p.hub.log.count("its pod was let through", strconv.Quote(p.namespace))
}

// hubsPatience is how long an admission waits for news of its owner, or for a list after a takeover, before it does what is safe. One
// that took so long may be such a case, of a replica whose log is not at hand.
const hubsPatience = 250 * time.Millisecond

// unsure counts the pods about which nobody decided since the spec began, or the hub without knowing enough; some of them twice.
func (p *placing) unsure() int {
	p.t.Helper()
	created := []kube.Filter{kube.OnResource("pods"), kube.ByVerb("create")}
	return p.undecided() + p.hub.log.count("placed a pod in doubt", strconv.Quote(p.namespace)) +
		len(p.audited(append(created, kube.WebhookSlow(hubsPatience), kube.Not(kube.WebhookSkipped))...))
}

// moved expects so many granted evictions since the spec began. Where the machine was too slow for decisions, more
// or fewer replicas had to move.
func (p *placing) moved(moves int, filters ...kube.Filter) {
	p.t.Helper()
	evictions := p.audited(append(filters, kube.Evictions)...)
	if unsure := p.unsure(); unsure > 0 {
		p.t.Logf("the machine was too slow for the hub's decision on %d pods of namespace %s; %d evictions for %d", unsure, p.namespace, len(evictions), moves)
		return
	}
	p.Expect(evictions).To(HaveLen(moves))
}

// remark makes the spec count from now on.
func (p *placing) remark() {
	p.t.Helper()
	mark, err := p.member.Cluster.Audit().Mark()
	p.Expect(err).NotTo(HaveOccurred())
	p.mark = mark
}

// mixed waits for the formula's mix, by whatever moves.
func (p *placing) mixed(w *fleet.Workload, replicas, percent, floor int) {
	p.t.Helper()
	spot, onDemand := fleet.Want(replicas, percent, floor)
	p.Expect(w.AwaitMix(p.ctx, spot, onDemand)).To(Succeed())
	p.settle(w, replicas)
}

// settle waits until the hub has nothing left to do about a workload.
func (p *placing) settle(w *fleet.Workload, replicas int) {
	p.t.Helper()
	p.Expect(p.hub.Settle(p.ctx, w, replicas)).To(Succeed())
}

// follow remembers what happens to the workload's pods from now on.
func (p *placing) follow(w *fleet.Workload) *fleet.History {
	p.t.Helper()
	history, err := w.Follow(p.ctx)
	p.Expect(err).NotTo(HaveOccurred())
	p.t.Cleanup(history.Stop)
	return history
}

// moments are what a history holds so far.
func (p *placing) moments(history *fleet.History) []fleet.Moment {
	p.t.Helper()
	moments, err := history.Moments()
	p.Expect(err).NotTo(HaveOccurred())
	return moments
}

// audited are the requests in the spec's namespace that pass the filters, since the spec began.
func (p *placing) audited(filters ...kube.Filter) []kube.AuditEvent {
	p.t.Helper()
	events, err := p.member.Cluster.Audit().Since(p.mark, append(filters, kube.InNamespace(p.namespace))...)
	p.Expect(err).NotTo(HaveOccurred())
	return events
}

// evictions are those that were granted, whoever asked.
func (p *placing) evictions() []kube.AuditEvent { return p.audited(kube.Evictions) }

// writes are what the hub changed, Events left out.
func (p *placing) writes() []kube.AuditEvent {
	return p.audited(fleet.ByHub, kube.Writes, kube.Not(kube.OnResource("events")))
}

// pods are the workload's, live.
func (p *placing) pods(w *fleet.Workload) []corev1.Pod {
	p.t.Helper()
	pods, err := w.Pods(p.ctx)
	p.Expect(err).NotTo(HaveOccurred())
	return pods
}

// slots are the slots that the workload's pods hold, in no order; "" for none.
func (p *placing) slots(w *fleet.Workload) []string {
	p.t.Helper()
	var slots []string
	for _, pod := range p.pods(w) {
		slots = append(slots, pod.Labels[fleet.Keys.Slot()])
	}
	return slots
}

// firstSlots are the slots from 0 that so many replicas hold.
func firstSlots(replicas int) []string {
	slots := make([]string, replicas)
	for i := range slots {
		slots[i] = strconv.Itoa(i)
	}
	return slots
}
