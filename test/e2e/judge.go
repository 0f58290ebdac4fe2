package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/plimsoll-dev/plimsoll/test/fleet"
	"github.com/plimsoll-dev/plimsoll/test/kube"
)

// An Outcome says what the recorded history has in it, from the beginning on. What must not be is a sentence each.
type Outcome struct {
	// DoubleWrites are writes by a replica that did not hold the Lease, attempts included.
	DoubleWrites []string
	// FloorBreaks are evictions by the hub of on-demand replicas when no more than the floor were there.
	FloorBreaks []string
	// BudgetBreaks are pods that the hub took otherwise than through the eviction API, or past the budget.
	BudgetBreaks []string
	// Unnamed are evictions that the hub has asked for without naming the pod by its UID: one that takes a successor of the same
	// name would look like them.
	Unnamed []string
	// Lost are orders that were acknowledged and not carried out.
	Lost []string
	// Writes by the hub, Evictions that it was granted, Budgeted, how many of those the budget has counted, and Tenures that
	// there were: how much there was to judge. Named evictions are those that were asked for by UID, granted or not.
	Writes, Evictions, Budgeted, Named, Tenures int
	// Orders that were acknowledged, and TakenUp, how many of them another replica or the next reconcile had to finish.
	Orders, TakenUp int
	// Changes of sizes and policies that were acknowledged.
	Changes int
}

// Err is nil when there is nothing that must not be.
func (v *Outcome) Err() error {
	var problems []error
	for what, sentences := range map[string][]string{
		"writes without the Lease": v.DoubleWrites, "the floor was broken": v.FloorBreaks, "the budget was broken": v.BudgetBreaks,
		"acknowledged and lost": v.Lost, "evictions that do not name the pod": v.Unnamed,
	} {
		for _, sentence := range sentences {
			problems = append(problems, fmt.Errorf("%s: %s", what, sentence))
		}
	}
	return errors.Join(problems...)
}

// String says how much was judged.
func (v *Outcome) String() string {
	return fmt.Sprintf("%d changes and %d orders acknowledged (%d finished by another reconcile), %d writes and %d evictions by the hub (%d counted by the budget; %d asked for by UID), %d tenures",
		v.Changes, v.Orders, v.TakenUp, v.Writes, v.Evictions, v.Budgeted, v.Named, v.Tenures)
}

// A write is one that a replica asked a member for, whatever came of it.
type write struct {
	replica, what string
	at            time.Time
}

// byHub passes what the hub asked for in order to change something. Reviews of its own rights change nothing, and Events only
// report what was done under the Lease: one that is on its way when its replica stops may come in a moment later.
var byHub = kube.All(fleet.ByHub, kube.ByVerb("create", "update", "patch", "delete", "deletecollection"), kube.Not(kube.DryRun),
	kube.Not(review), kube.Not(report))

func report(e kube.AuditEvent) bool { return e.Resource == "events" }

func review(e kube.AuditEvent) bool {
	return e.APIGroup == "authentication.k8s.io" || e.APIGroup == "authorization.k8s.io"
}

// writesIn are the hub's writes in a member; whoHad knows which replica had an address.
func writesIn(member string, events []kube.AuditEvent, whoHad func(ip string, at time.Time) string) (writes []write) {
	for _, e := range events {
		if !byHub(e) {
			continue
		}
		w := write{at: e.Received, what: fmt.Sprintf("%s %s of %s (%d)", e.Verb, e.URI, member, e.Code)}
		if len(e.SourceIPs) > 0 {
			w.replica = whoHad(e.SourceIPs[0], e.Received)
		}
		writes = append(writes, w)
	}
	return writes
}

// doubleWrites finds what was written by a replica at a time that is in none of its tenures. Tenures do not overlap, so of two
// replicas whose writes interleave, one is found.
func doubleWrites(tenures []Tenure, writes []write) (sentences []string) {
	for _, w := range writes {
		held := slices.ContainsFunc(tenures, func(t Tenure) bool {
			return t.Replica == w.replica && !w.at.Before(t.From) && !w.at.After(t.Until)
		})
		if !held {
			sentences = append(sentences, fmt.Sprintf("%s at %s by %q: %s", w.what, w.at.Format(clock), w.replica, around(tenures, w.at)))
		}
	}
	return sentences
}

// clock is how times are written.
const clock = "15:04:05.000"

// around shows the tenures before and after a time.
func around(tenures []Tenure, at time.Time) (shown string) {
	for _, t := range tenures {
		if at.Sub(t.Until).Abs() < time.Minute || at.Sub(t.From).Abs() < time.Minute {
			shown += fmt.Sprintf("[%s %s-%s]", t.Replica, t.From.Format(clock), t.Until.Format(clock))
		}
	}
	return shown
}

// lag is how old a view of a cluster may be that is acted on: pods that went otherwise within this time before an eviction are
// not the hub's doing.
const lag = 5 * time.Second

// judgePods looks for broken floors and budgets among what the hub did to the pods of a member's workload.
func (h *podHistory) judgePods(member string, events []kube.AuditEvent, into *Outcome) {
	h.mu.Lock()
	defer h.mu.Unlock()
	evicted, deleted := map[string]time.Time{}, map[string]time.Time{} // when first asked for and granted
	for _, e := range events {
		if e.Namespace != shop {
			continue
		}
		gone := e.Resource == "pods" && e.Subresource == "" && (e.Verb == "delete" || e.Verb == "deletecollection")
		switch {
		case gone && fleet.ByHub(e):
			into.BudgetBreaks = append(into.BudgetBreaks, fmt.Sprintf("%s: %s %s at %s", member, e.Verb, e.URI, e.Received.Format(clock)))
		case gone && kube.Succeeded(e):
			first(deleted, e.Name, e.Received)
		case kube.Evictions(e) && fleet.ByHub(e):
			into.Evictions++
			first(evicted, e.Name, e.Answered)
		}
	}
	// A pod that somebody else has deleted before is no longer the hub's doing.
	for pod, at := range evicted {
		if other, is := deleted[pod]; is && !other.After(at) {
			delete(evicted, pod)
		}
	}
	h.judgeFloor(member, evicted, into)
	h.judgeBudget(member, evicted, into)
}

func first(times map[string]time.Time, name string, at time.Time) {
	if before, known := times[name]; !known || at.Before(before) {
		times[name] = at
	}
}

func (h *podHistory) judgeFloor(member string, evicted map[string]time.Time, into *Outcome) {
	for i, d := range h.departures {
		if _, ours := evicted[d.pod]; !ours {
			continue
		}
		known := d.before
		for _, other := range h.departures[:i] {
			if _, ours := evicted[other.pod]; !ours && d.at.Sub(other.at) <= lag {
				known++
			}
		}
		if known <= floor {
			into.FloorBreaks = append(into.FloorBreaks, fmt.Sprintf("%s: %s was evicted at %s when %d were on-demand", member, d.pod, d.at.Format(clock), d.before))
		}
	}
}

// judgeBudget wants every replica that was ready when it was evicted to be counted by the budget, which had something left.
func (h *podHistory) judgeBudget(member string, evicted map[string]time.Time, into *Outcome) {
	for _, pod := range h.overdrawn {
		if _, ours := evicted[pod]; ours {
			into.BudgetBreaks = append(into.BudgetBreaks, fmt.Sprintf("%s: %s was evicted when the budget had nothing left", member, pod))
		}
	}
	for pod, at := range evicted {
		if h.disrupted[pod] {
			into.Budgeted++
			continue
		}
		known := h.pods[pod]
		serving := known != nil && !known.ready.IsZero() && known.ready.Before(at) && !known.unready
		unseen := slices.ContainsFunc(h.gaps, func(g gap) bool { return at.After(g.from.Add(-lag)) && at.Before(g.to.Add(lag)) })
		if serving && !unseen {
			into.BudgetBreaks = append(into.BudgetBreaks, fmt.Sprintf("%s: %s was evicted at %s, and its budget knows nothing of it", member, pod, at.Format(clock)))
		}
	}
}

// An evictionRequest is what the hub has asked for, of which [kube.AuditEvent] leaves out the body.
type evictionRequest struct {
	User struct {
		Username string `json:"username"`
	} `json:"user"`
	ObjectRef struct {
		Resource    string `json:"resource"`
		Subresource string `json:"subresource"`
		Namespace   string `json:"namespace"`
		Name        string `json:"name"`
	} `json:"objectRef"`
	Received       time.Time          `json:"requestReceivedTimestamp"`
	Body           *policyv1.Eviction `json:"requestObject"` // nil: the API server has not read it
	ResponseStatus struct {
		Code int `json:"code"`
	} `json:"responseStatus"`
}

// evictionsIn are the hub's requests to evict in an audit log, granted or not. A last line that is not complete yet is left out.
func evictionsIn(log []byte) (asked []evictionRequest, err error) {
	for line := range bytes.Lines(log) {
		if !bytes.HasSuffix(line, []byte("\n")) {
			break
		}
		var e evictionRequest
		if err := json.Unmarshal(line, &e); err != nil {
			return nil, err
		}
		if e.User.Username == fleet.HubUser && e.ObjectRef.Resource == "pods" && e.ObjectRef.Subresource == "eviction" {
			asked = append(asked, e)
		}
	}
	return asked, nil
}

// uid is that of the pod that is meant, if the request says so.
func (e *evictionRequest) uid() types.UID {
	if e.Body == nil || e.Body.DeleteOptions == nil || e.Body.DeleteOptions.Preconditions == nil {
		return ""
	}
	return ptr.Deref(e.Body.DeleteOptions.Preconditions.UID, "")
}

// judgeNames wants every eviction that the hub asked for to name its pod by the UID.
func (h *podHistory) judgeNames(member string, asked []evictionRequest, into *Outcome) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := range asked {
		e := &asked[i]
		if e.Body == nil && e.ResponseStatus.Code >= http.StatusBadRequest {
			continue // refused unread, as somebody who may not or has to wait: it says nothing
		}
		is := e.uid()
		problem := ""
		if is == "" {
			problem = "without its UID"
		} else if known := h.pods[e.ObjectRef.Name]; known != nil && e.ObjectRef.Namespace == shop && known.uid != is {
			problem = fmt.Sprintf("as %s, and is %s", is, known.uid)
		}
		if problem == "" {
			into.Named++
			continue
		}
		into.Unnamed = append(into.Unnamed, fmt.Sprintf("%s: %s was to be evicted at %s %s",
			member, e.ObjectRef.Name, e.Received.Format(clock), problem))
	}
}
