package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/plimsoll-dev/plimsoll/test/fleet"
)

const (
	// churnEvery, changeEvery and orderEvery are the pace of the load in each member.
	churnEvery  = 1500 * time.Millisecond
	changeEvery = 2500 * time.Millisecond
	orderEvery  = 1200 * time.Millisecond
	// answerTime is how long the load waits for an answer.
	answerTime = 5 * time.Second
)

// A Wish is what a workload is asked to be.
type Wish struct {
	Replicas, Percent, Floor int
	// Asked and Answered are when it was asked for. It may hold since Asked, and surely since Answered if that is not zero.
	Asked, Answered time.Time
}

// steadyWish is that of the workload that only has churn: the case in which takeovers once broke the floor.
var steadyWish = Wish{Replicas: 8, Percent: 90, Floor: 3}

// Sizes and shares that the load goes through.
var (
	sizes  = []int{6, 8, 10, 14}
	shares = []int{25, 50, 75, 100}
	floors = []int{1, 2, 3}
)

// A subject is a workload under load, with all that is known of it.
type subject struct {
	workload *fleet.Workload
	history  *fleet.History
	steady   bool

	mu     sync.Mutex
	wishes []Wish // at least one
	images int
}

// A load is what users and others do in the members meanwhile.
type load struct {
	site     *site
	subjects []*subject
	orders   *orders
	seed     uint64

	going   context.CancelFunc // nil: it does not
	runners sync.WaitGroup
}

// newLoad makes two workloads in each member and follows their pods.
func newLoad(ctx context.Context, s *site, seed uint64) (*load, error) {
	l := &load{site: s, orders: newOrders(s), seed: seed}
	for _, m := range s.fleet.Members {
		namespace, err := m.NewNamespace(ctx, "robustness", fleet.Enabled())
		if err != nil {
			return l, err
		}
		steady, err := newSubject(ctx, m, namespace, "steady", steadyWish)
		if err != nil {
			return l, err
		}
		steady.steady = true
		moving, err := newSubject(ctx, m, namespace, "moving", Wish{Replicas: 8, Percent: 50, Floor: 2})
		if err != nil {
			return l, err
		}
		budget := &policyv1.PodDisruptionBudget{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "moving"},
			Spec: policyv1.PodDisruptionBudgetSpec{
				MaxUnavailable: ptr.To(intstr.FromString("30%")),
				Selector:       &metav1.LabelSelector{MatchLabels: map[string]string{fleet.AppLabel: "moving"}},
			},
		}
		if err := m.Client().Create(ctx, budget); err != nil {
			return l, err
		}
		l.subjects = append(l.subjects, steady, moving)
	}
	return l, nil
}

func newSubject(ctx context.Context, m *fleet.Member, namespace, name string, wish Wish) (*subject, error) {
	w, err := m.Create(ctx, fleet.Deployment(namespace, name, wish.Replicas, fleet.Policy(wish.Percent, wish.Floor)))
	if err != nil {
		return nil, err
	}
	history, err := w.Follow(ctx)
	if err != nil {
		return nil, err
	}
	wish.Asked = time.Now()
	wish.Answered = wish.Asked
	return &subject{workload: w, history: history, wishes: []Wish{wish}}, nil
}

// close ends the load for good.
func (l *load) close() {
	l.pause()
	l.orders.close()
	for _, s := range l.subjects {
		s.history.Stop()
	}
}

// start lets the load go on.
func (l *load) start(ctx context.Context, round int) {
	ctx, l.going = context.WithCancel(ctx)
	for i, s := range l.subjects {
		random := rand.New(rand.NewPCG(l.seed+uint64(round), uint64(i)))
		do, pace := s.change, changeEvery
		if s.steady {
			do, pace = s.churn, churnEvery
		}
		l.runners.Go(func() { fleet.EveryWithin(ctx, pace, answerTime, func(ctx context.Context) { do(ctx, random) }) })
		choice := rand.New(rand.NewPCG(l.seed+uint64(round), uint64(100+i)))
		l.runners.Go(func() { fleet.EveryWithin(ctx, orderEvery, answerTime, func(ctx context.Context) { l.orders.order(ctx, s.workload, choice) }) })
	}
}

// pause stops the load; what was begun is brought to its end.
func (l *load) pause() {
	if l.going != nil {
		l.going()
		l.going = nil
	}
	l.runners.Wait()
}

// churn takes one or two pods away, as somebody else would.
func (s *subject) churn(ctx context.Context, random *rand.Rand) {
	pods, err := s.workload.Pods(ctx)
	if err != nil {
		return
	}
	random.Shuffle(len(pods), func(i, j int) { pods[i], pods[j] = pods[j], pods[i] })
	for i := range pods[:min(len(pods), 1+random.IntN(2))] {
		_, _ = s.workload.Member.Evict(ctx, &pods[i]) // refused: another one will be taken next time
	}
}

// change scales, rolls out or changes the policy.
func (s *subject) change(ctx context.Context, random *rand.Rand) {
	wish := s.wish()
	wish.Asked, wish.Answered = time.Now(), time.Time{}
	var err error
	switch chance := random.Float64(); {
	case chance < 0.5:
		wish.Replicas = sizes[random.IntN(len(sizes))]
		s.note(wish)
		err = s.workload.Scale(ctx, wish.Replicas)
	case chance < 0.85:
		wish.Percent, wish.Floor = shares[random.IntN(len(shares))], floors[random.IntN(len(floors))]
		s.note(wish)
		err = s.workload.Annotate(ctx, fleet.Policy(wish.Percent, wish.Floor))
	default:
		s.images++
		_ = s.workload.Retemplate(ctx, fmt.Sprintf("images.example.com/app:%d", s.images)) // or not: nothing depends on it
		return
	}
	if err == nil {
		s.answered()
	}
}

func (s *subject) note(wish Wish) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wishes = append(s.wishes, wish)
}

// answered notes that the last wish is in force.
func (s *subject) answered() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wishes[len(s.wishes)-1].Answered = time.Now()
}

// wish is the last one.
func (s *subject) wish() Wish {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.wishes[len(s.wishes)-1]
}

// list is all that was ever wished.
func (s *subject) list() []Wish {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.wishes)
}

// settle asks for the last wishes once more, which some may have missed, and waits until all workloads are as they were wished.
func (l *load) settle(ctx context.Context) error {
	var problems []error
	for _, s := range l.subjects {
		wish := s.wish()
		wish.Asked = time.Now()
		s.note(wish)
		err := errors.Join(s.workload.Scale(ctx, wish.Replicas), s.workload.Annotate(ctx, fleet.Policy(wish.Percent, wish.Floor)))
		if err != nil {
			problems = append(problems, err)
			continue
		}
		s.answered()
		spot, onDemand := fleet.Want(wish.Replicas, wish.Percent, wish.Floor)
		problems = append(problems, s.workload.AwaitMix(ctx, spot, onDemand))
	}
	return errors.Join(problems...)
}
