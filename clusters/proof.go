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
	firstSilent                  // the first refused or failed a request, and the second none
	secondSilent                 // the other way round
	bothSilent                   // both did: nothing can be shown
	disturbed                    // somebody else wrote meanwhile: it has to be tried again
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
	found   answer // through the other
	kept    answer // the one still shows it, though the other does not
}

// conclude says what the two crossings show: ab goes from the first to the second. When they are the last that are tried, who does
// not keep what was written there counts as silent.
func conclude(ab, ba crossing, last bool) decision {
	first := ab.written == silent || ab.kept == silent || ba.found == silent || last && ab.kept == no
	second := ba.written == silent || ba.kept == silent || ab.found == silent || last && ba.kept == no
	switch {
	case first && second:
		return bothSilent
	case first:
		return firstSilent
	case second:
		return secondSilent
	case ab.kept == no || ba.kept == no:
		return disturbed
	case ab.found == yes && ba.found == yes:
		return oneCluster
	}
	return twoClusters
}

// settled reports whether trying again at once would show nothing else.
func (v decision) settled() bool { return v == oneCluster || v == twoClusters }

// witness asks a member for its part of a proof.
type witness interface {
	writeNonce(ctx context.Context, namespace, nonce string) error
	readNonce(ctx context.Context, namespace string) (string, error)
}

// cross brings a nonce from one member to the other.
func cross(ctx context.Context, namespace string, from, to witness) crossing {
	nonce := newNonce()
	c := crossing{written: answerOf(true, from.writeNonce(ctx, namespace, nonce))}
	if c.written == silent {
		return c
	}
	seen, err := to.readNonce(ctx, namespace)
	if c.found = answerOf(seen == nonce, err); c.found != no {
		return c
	}
	seen, err = from.readNonce(ctx, namespace)
	c.kept = answerOf(seen == nonce, err)
	return c
}

// newNonce has 128 random bits.
func newNonce() string {
	var bits [16]byte
	_, _ = rand.Read(bits[:]) // never fails
	return hex.EncodeToString(bits[:])
}

// tryToProve asks both members, again after a while when one was silent or somebody else wrote meanwhile.
func tryToProve(ctx context.Context, namespace string, first, second witness, pause time.Duration) decision {
	var found decision
	for attempt := range proofAttempts {
		if attempt > 0 {
			sleep(ctx, wait.Jitter(pause, 1))
		}
		ab, ba := cross(ctx, namespace, first, second), cross(ctx, namespace, second, first)
		if found = conclude(ab, ba, attempt == proofAttempts-1); found.settled() {
			break
		}
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

// again has a proof tried once more that showed nothing but silence.
func (p *Provider) again(task proofTask) {
	if p.claims.expire(task) {
		p.prove(task.first.name)
	}
}
