package spot

import (
	"errors"
	"net/http"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/internal/phrase"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/internal/when"
)

const (
	// denialRetry is when a write that the API server refused for what it changes is tried again; it doubles with each further
	// refusal up to denialMaxRetry.
	denialRetry    = time.Minute
	denialMaxRetry = 30 * time.Minute
	// maxDenials is how many refusals of one kind of write, without a single success, end it for this plan.
	maxDenials = 32
	// maxDenialMessage is how much of what the API server says is shown, in bytes.
	maxDenialMessage = 240
)

// denialOf reads off an error that the API server refuses this very write, as a policy or a validation makes it do: to repeat
// it gets the same answer. It returns what the server says; false: it is another error.
func denialOf(err error) (message string, denied bool) {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return "", false
	}
	answer := status.Status()
	switch code := answer.Code; {
	case code < http.StatusBadRequest || code >= http.StatusInternalServerError:
		return "", false
	case code == http.StatusUnauthorized, code == http.StatusNotFound, code == http.StatusRequestTimeout,
		code == http.StatusConflict, code == http.StatusTooManyRequests:
		return "", false
	}
	return phrase.Line(answer.Message, maxDenialMessage), true
}

// byAdmission reports whether an admission webhook or policy refused the request, in the words that the API server has for it,
// and not the permissions of the hub, which are the same for every pod.
func byAdmission(message string) bool {
	return strings.Contains(message, "denied the request") || strings.Contains(message, "denied request")
}

// denialsMet are the refusals that one plan met.
type denialsMet struct {
	pods    int
	message string    // of the first
	retry   time.Time // when the first of them is tried again
}

func (d *denialsMet) add(message string, retry time.Time) {
	if d.pods == 0 {
		d.message = message
	}
	d.pods++
	d.retry = when.Earlier(d.retry, retry)
}

// denials remembers which writes the API server refused, by the UID of a pod or of an owner whose pods cannot be released, so
// that they are not repeated with every plan. It is safe for concurrent use. The zero value is empty.
type denials struct {
	mu      sync.Mutex
	of      map[types.UID]denial
	pruneAt int // number of entries at which old ones are looked for
}

type denial struct {
	message string
	wait    time.Duration
	until   time.Time
}

// note takes in a refusal, and returns when the write may be tried again.
func (d *denials) note(uid types.UID, message string, now time.Time) time.Time {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.of == nil {
		d.of = map[types.UID]denial{}
	}
	known := d.of[uid]
	if now.Before(known.until) {
		return known.until // another write of the same batch
	}
	wait := min(max(2*known.wait, denialRetry), denialMaxRetry)
	d.of[uid] = denial{message: message, wait: wait, until: now.Add(wait)}
	if len(d.of) > d.pruneAt {
		for uid, known := range d.of {
			if now.Sub(known.until) > denialMaxRetry {
				delete(d.of, uid)
			}
		}
		d.pruneAt = 64 + 2*len(d.of)
	}
	return now.Add(wait)
}

// stands returns the refusal of a write that is not to be repeated yet.
func (d *denials) stands(uid types.UID, now time.Time) (denial, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	known, ok := d.of[uid]
	return known, ok && now.Before(known.until)
}

// end forgets the refusal of a write that was done.
func (d *denials) end(uid types.UID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.of, uid)
}

// keptErrors bounds how many errors of one reconcile are reported.
const keptErrors = 8

// errorList collects the errors of writes that do not depend on each other. It is safe for concurrent use. The zero value is
// empty.
type errorList struct {
	mu   sync.Mutex
	errs []error
	more int
}

func (l *errorList) add(err error) {
	if err == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.errs) < keptErrors {
		l.errs = append(l.errs, err)
	} else {
		l.more++
	}
}

// join returns the errors as one, and says how many are left out; nil: there are none.
func (l *errorList) join() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.more == 0 {
		return errors.Join(l.errs...)
	}
	return errors.Join(append(l.errs[:len(l.errs):len(l.errs)], errors.New(phrase.Count(l.more, "further write")+" failed"))...)
}
