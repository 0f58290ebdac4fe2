package apply

import (
	"context"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/plimsoll-dev/plimsoll/reconcile/internal/retry"
)

const (
	// quickRepairs is how often a field of an object is corrected at once: a person who changes it by hand learns of it.
	quickRepairs = 3
	// calmAfter is the time without a repair after which the next ones are quick again, beside the wait itself.
	calmAfter = 10 * time.Minute
)

// A contest is between a controller and another manager that wants another value of the same field.
type contest struct {
	repairs uint32 // in a row
	last    time.Time
	wait    time.Duration // after the last, until the next
	rivals  string        // the managers that own the field beside us, for people; empty: not looked for yet
}

// contested returns the contest about an object, and whether its next repair has to wait.
func (m *Memory) contested(key appliedKey) (contest, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	c, ok := m.contests[key]
	return c, ok && time.Since(c.last) < c.wait
}

// repaired notes a repair. From the fourth in a row on, each doubles the wait for the next.
func (m *Memory) repaired(key appliedKey) {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := m.contests[key]
	if time.Since(c.last) > c.wait+calmAfter {
		c = contest{}
	}
	c.repairs, c.last, c.rivals = c.repairs+1, time.Now(), ""
	if c.repairs >= quickRepairs {
		c.wait = retry.Usual.Backoff(c.repairs-quickRepairs+1, 0.5)
	}
	if m.contests == nil {
		m.contests = map[appliedKey]contest{}
	}
	makeRoom(m.contests, key)
	m.contests[key] = c
}

// named notes who the rivals are.
func (m *Memory) named(key appliedKey, rivals string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if c, ok := m.contests[key]; ok {
		c.rivals = rivals
		m.contests[key] = c
	}
}

// ContestedError says that another field manager sets a field differently again and again, so that it is only corrected
// now and then.
type ContestedError struct {
	Field   string        // for example "spec.replicas"
	Rivals  string        // the other managers, for people
	AtLeast time.Duration // between two repairs
}

func (e *ContestedError) Error() string {
	return fmt.Sprintf("%s is set differently again and again by %s: it is set right at most every %s", e.Field, e.Rivals, e.AtLeast)
}

// mayRepair returns a [ContestedError] when the object was repaired too often lately.
func (a *Call) mayRepair(ctx context.Context, field fieldpath.Path) error {
	c, wait := a.Memory.contested(a.key())
	if !wait {
		return nil
	}
	if c.rivals == "" {
		c.rivals = a.findRivals(ctx, field)
		a.Memory.named(a.key(), c.rivals)
	}
	return &ContestedError{Field: textOf(field), Rivals: c.rivals, AtLeast: c.wait}
}

// findRivals asks the member who else owns a field; the cache does not hold that.
func (a *Call) findRivals(ctx context.Context, field fieldpath.Path) string {
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(a.gvk)
	if err := a.Live.Get(ctx, client.ObjectKeyFromObject(a.obj), live); err != nil {
		return "another client"
	}
	managers := otherOwners(live.GetManagedFields(), a.Manager, field)
	if len(managers) == 0 {
		return "another client"
	}
	return "the field manager " + strings.Join(managers, " and ")
}
