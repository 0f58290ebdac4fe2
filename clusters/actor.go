package clusters

import (
	"context"
	"crypto/sha256"
	"errors"
	"reflect"
	"time"

	"sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	"github.com/plimsoll-dev/plimsoll/clusters/internal/intake"
	"github.com/plimsoll-dev/plimsoll/clusters/kubeconfig"
	"github.com/plimsoll-dev/plimsoll/internal/notify"
)

// actor manages one name: it makes what runs fit the Secret of that name. It has a goroutine of its own and never
// asks a member anything itself, so that it answers at once whatever state a member is in: members run in goroutines of
// their own and wake it when something changed. Every step looks at everything again; what woke it does not matter.
type actor struct {
	p    *Provider
	name string
	wake notify.Wake

	// What follows belongs to the goroutine.
	vettedHash [sha256.Size]byte // of the registration that was vetted last
	refusal    *problem          // why that one is not in use, nil if it is or may come to be
	comparing  bool              // the candidate waits for a proof that it is not another's cluster
	running    *engagement       // the member that controllers work on
	candidate  *engagement       // a member that is to become the running one, once it proves itself
	status     Status            // as published last
	breaker    bool              // as published last
	shown      shownIdentity
	turns      spacing      // of restarts because another cluster answers
	began      time.Time    // when the last of them is over
	pace       *intake.Pace // of whatever runs under the name: one that begins anew has no more than the one before; nil before the first
}

// engagement is a member with the context it runs in.
type engagement struct {
	member   *Member
	ctx      context.Context
	cancel   context.CancelFunc
	hash     [sha256.Size]byte // of the registration it was made of
	vetted   *kubeconfig.Vetted
	engaged  bool   // controllers have been notified
	warmings uint64 // of the member when they were last reported
}

// poke asks the actor to look again. It never blocks.
func (a *actor) poke() { a.wake.Signal() }

// run steps whenever it is poked, until the registration is gone or ctx ends.
func (a *actor) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			a.drop(&a.candidate)
			a.drop(&a.running)
			return
		case <-a.wake:
		}
		if want := a.p.secrets.get(a.name); want != nil {
			a.step(ctx, want)
		} else if !a.p.secrets.isGone(ctx, a.name) {
			time.AfterFunc(a.p.opts.RetryMin, a.poke)
		} else if a.leave() {
			return
		}
	}
}

// step makes what runs fit want, as far as that is possible now.
func (a *actor) step(ctx context.Context, want *desired) {
	a.vet(ctx, want)
	a.settleIdentity(ctx, want)
	a.promote()
	a.engage()
	a.publish(want)
}

// vet looks at a registration that is new. One that is refused leaves the running member as it is.
func (a *actor) vet(ctx context.Context, want *desired) {
	if a.vettedHash == want.hash && (a.refusal != nil || a.running != nil || a.candidate != nil) {
		return
	}
	a.vettedHash, a.refusal = want.hash, nil
	if a.candidate != nil && a.candidate.hash != want.hash {
		a.drop(&a.candidate)
	}
	vetted, err := a.p.vet(a.name, want)
	if err != nil {
		a.refusal = classify(err)
		return
	}
	if a.candidate == nil && (a.running == nil || a.running.hash != want.hash) {
		a.candidate = a.launch(ctx, vetted, want.hash, 0)
	}
}

// launch starts a member after a pause; a refusal is set, and nil returned, if it cannot even be built. A pause is one after another cluster
// answered, which its status shows until then.
func (a *actor) launch(ctx context.Context, vetted *kubeconfig.Vetted, hash [sha256.Size]byte, pause time.Duration) *engagement {
	if a.pace == nil {
		a.pace = new(intake.NewPace(a.p.metrics.pacing(a.name)))
	}
	member, err := newMember(a.name, vetted, a.p.memberOptions(a))
	if err != nil {
		a.refusal = refused(kubeconfig.ReasonInvalidKubeconfig, "the kubeconfig cannot be used")
		var refusal *kubeconfig.RefusedError
		if errors.As(err, &refusal) {
			a.refusal = classify(refusal)
		}
		return nil
	}
	e := &engagement{member: member, hash: hash, vetted: vetted}
	e.ctx, e.cancel = context.WithCancel(ctx)
	a.p.track(member)
	if pause > 0 {
		member.health.begin(healthReport{probed: true, problem: otherCluster()})
	}
	a.p.running.Go(func() {
		defer a.p.untrack(member)
		if pause > 0 {
			sleep(e.ctx, pause)
			member.health.begin(healthReport{})
		}
		_ = member.Start(e.ctx) // fails only when it is started twice
	})
	return e
}

// drop ends an engagement. It does not wait: nothing a member does may hold up what comes next.
func (a *actor) drop(e **engagement) {
	if *e == nil {
		return
	}
	a.p.unpublish((*e).member)
	(*e).cancel()
	*e = nil
}

// turned restarts e because another cluster answers. A server may say so again and again, and each time all kinds are read anew, so
// restarts become seldom.
func (a *actor) turned(ctx context.Context, e *engagement) {
	a.turns.lasted(time.Since(a.began))
	pause := a.turns.next()
	a.began = time.Now().Add(pause)
	a.restart(ctx, e, pause)
}

// restart replaces e, after a pause, by a member that has to prove itself again.
func (a *actor) restart(ctx context.Context, e *engagement, pause time.Duration) {
	vetted, hash := e.vetted, e.hash
	if e == a.running {
		a.drop(&a.running)
	} else {
		a.drop(&a.candidate)
	}
	if a.candidate == nil && a.vettedHash == hash {
		a.candidate = a.launch(ctx, vetted, hash, pause)
	}
}

// promote makes the candidate the running member when it has proven itself. The first one is taken as soon as anything
// is cached; one that replaces another only when all kinds have been tried and none is lost by the change, unless the
// old one cannot be reached anyway.
func (a *actor) promote() {
	if a.candidate == nil {
		return
	}
	next := a.candidate.member.report()
	if !next.admitted || !next.reachable {
		return
	}
	if a.running == nil {
		if !next.warm() && !next.settled() {
			return
		}
	} else if old := a.running.member.report(); !next.settled() || old.reachable && !next.covers(old) {
		return
	}
	old := a.running
	a.running, a.candidate = a.candidate, nil
	a.p.install(a.running.member)
	a.drop(&old)
}

// engage notifies the controllers about the running member, and does so again each time a further kind became warm.
func (a *actor) engage() {
	if a.running == nil {
		return
	}
	warmings := a.running.member.report().warmings
	if a.running.engaged && a.running.warmings == warmings {
		return
	}
	err := a.p.aware.Engage(a.running.ctx, multicluster.ClusterName(a.name), a.running.member)
	if err != nil && a.running.ctx.Err() == nil {
		a.p.log.Error("engage controllers", "member", a.name, "error", err)
		time.AfterFunc(a.p.opts.RetryMin, a.poke)
		return
	}
	a.running.engaged, a.running.warmings = true, warmings
}

// publish makes the status known if it changed.
func (a *actor) publish(want *desired) {
	v := view{registration: want.registration, registered: want.created, refusal: a.refusal, comparing: a.comparing, staleLimit: a.p.opts.StaleLimit}
	if a.p.opts.HubNamespace != "" {
		v.layout = &want.layout
	}
	breaker := false
	switch {
	case a.running != nil:
		v.member = a.running.member.report()
		breaker = a.running.member.BreakerOpen()
		a.judgeCandidate(&v)
	case a.candidate != nil:
		v.member = a.candidate.member.report()
		breaker = a.candidate.member.BreakerOpen()
	}
	status := assess(v, a.status, time.Now())
	a.p.publish(a, status, breaker)
	a.breaker = breaker
}

// judgeCandidate says how a changed Secret fares beside the running member.
func (a *actor) judgeCandidate(v *view) {
	if a.candidate == nil || v.refusal != nil {
		return
	}
	next := a.candidate.member.report()
	switch {
	case next.problem != nil:
		v.refusal = next.problem
	case next.settled() && !next.covers(v.member):
		v.refusal = refused(ReasonKindsMissing, "with it, kinds would be lost: "+missingKinds(next))
	default:
		v.proving = true
	}
}

// leave ends everything when the registration is gone, and reports whether the actor is done: a registration of the same
// name may have come in the meantime.
func (a *actor) leave() bool {
	a.drop(&a.candidate)
	a.drop(&a.running)
	a.p.claim(a.name)
	a.vettedHash, a.refusal, a.shown, a.pace = [sha256.Size]byte{}, nil, shownIdentity{}, nil
	a.p.farewell(a)
	return a.p.retire(a)
}

// onlyProbed reports whether two statuses differ in nothing but the time of the last probe.
func onlyProbed(a, b Status) bool {
	a.LastProbe, a.LastAnswer = b.LastProbe, b.LastAnswer
	return reflect.DeepEqual(a, b)
}
