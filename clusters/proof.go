package clusters

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// Two registrations that say they lead to one cluster have it shown: a nonce is written through one and read through the other, and
// then the other way round, because either may be the liar.

// decision is what a proof showed of the first and the second of two registrations.
type decision int

const (
	unproven     decision = iota // nothing is known yet
	oneCluster                   // each nonce was seen through the other
	twoClusters                  // a nonce stayed where it was written
	firstSilent                  // the first refused or failed a request in every attempt, and the second did not
	secondSilent                 // the other way round
	bothSilent                   // both did: nothing can be shown
	disturbed                    // somebody else wrote meanwhile, or was silent now and then: nothing was shown
)

// proofAttempts is how often a proof is tried at once. Replicas that try the same one disturb each other now and then.
const proofAttempts = 4

func (v decision) String() string {
	return [...]string{"unproven", "one cluster", "two clusters", "first silent", "second silent", "both silent", "disturbed"}[v]
}

// answer is the result of one request of a proof.
type answer int

const (
	unasked answer = iota
	yes
	no
	silent
)

func answerOf(is bool, err error) answer {
	switch {
	case err != nil:
		return silent
	case is:
		return yes
	}
	return no
}

// crossing is a nonce on its way from one registration to the other.
type crossing struct {
	written answer // through the one
	kept    answer // the one shows it at once; unasked: somebody else has written since
	found   answer // through the other
	stayed  answer // the one still shows it, though the other does not
}

// silent reports whether the one that the nonce was written through did not do its part. Who does not keep what is written at once is silent. Who
// does not show it any more later is not: until then the other side decides how long it takes, and others may write.
func (c crossing) silent() bool {
	return c.written == silent || c.kept == silent || c.kept == no || c.stayed == silent
}

// unseen reports whether the nonce stayed where it was written, and was not seen through the other.
func (c crossing) unseen() bool { return c.found == no && c.stayed == yes }

// conclude says what the two crossings of an attempt show: ab goes from the first to the second.
func conclude(ab, ba crossing) decision {
	first, second := ab.silent() || ba.found == silent, ba.silent() || ab.found == silent
	switch {
	case first && second:
		return bothSilent
	case first:
		return firstSilent
	case second:
		return secondSilent
	case ab.unseen() || ba.unseen():
		return twoClusters
	case ab.found == yes && ba.found == yes:
		return oneCluster
	}
	return disturbed
}

// settled reports whether trying again would show nothing else.
func (v decision) settled() bool { return v == oneCluster || v == twoClusters }

// and is what two attempts show that are not settled: who was silent in one of them only may have been hindered by the other.
func (v decision) and(other decision) decision {
	switch {
	case v == bothSilent || v == other:
		return other
	case other == bothSilent:
		return v
	}
	return disturbed
}

// witness asks a member for its part of a proof. Versions are those of the Lease; they are only compared with each other.
type witness interface {
	writeNonce(ctx context.Context, namespace, nonce string) (version string, err error)
	readNonce(ctx context.Context, namespace string) (nonce, version string, err error)
}

// cross brings a nonce from one member to the other.
func cross(ctx context.Context, namespace string, from, to witness) (c crossing) {
	nonce := newNonce()
	written, err := from.writeNonce(ctx, namespace, nonce)
	if c.written = answerOf(true, err); c.written == silent {
		return c
	}
	seen, version, err := from.readNonce(ctx, namespace)
	if err == nil && seen != nonce && version != written {
		return c // overwritten
	}
	if c.kept = answerOf(seen == nonce, err); c.kept != yes {
		return c
	}
	seen, _, err = to.readNonce(ctx, namespace)
	if c.found = answerOf(seen == nonce, err); c.found != no {
		return c
	}
	seen, _, err = from.readNonce(ctx, namespace)
	c.stayed = answerOf(seen == nonce, err)
	return c
}

// newNonce has 128 random bits.
func newNonce() string {
	var bits [16]byte
	_, _ = rand.Read(bits[:]) // never fails
	return hex.EncodeToString(bits[:])
}

// tryToProve asks both members, again after a while when one was silent or somebody else wrote meanwhile. Silent is who was it every time.
func tryToProve(ctx context.Context, namespace string, first, second witness, pause time.Duration) decision {
	found := bothSilent
	for attempt := range proofAttempts {
		if attempt > 0 {
			sleep(ctx, wait.Jitter(pause, 1))
		}
		ab, ba := cross(ctx, namespace, first, second), cross(ctx, namespace, second, first)
		shown := conclude(ab, ba)
		if shown.settled() {
			return shown
		}
		found = found.and(shown)
	}
	return found
}

// prove starts the proofs that name waits for.
func (p *Provider) prove(name string) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	ctx := p.ctx
	if ctx == nil {
		return
	}
	for _, task := range p.claims.due(name) {
		p.running.Go(func() {
			found := tryToProve(ctx, task.first.lease, task.first.witness, task.second.witness, p.opts.RetryMin)
			if ctx.Err() != nil || !p.claims.concluded(task, found) {
				return
			}
			p.log.Info("compared two registrations that claim to be the same cluster", "first", task.first.name, "second", task.second.name, "found", found.String())
			p.notice(task.first.name)
			p.notice(task.second.name)
			if !found.settled() {
				time.AfterFunc(p.opts.RetryMax, func() { p.again(task) })
			}
		})
	}
}

// again has a proof tried once more that is not settled.
func (p *Provider) again(task proofTask) {
	if p.claims.expire(task) {
		p.prove(task.first.name)
	}
}
