package shortage

import (
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/capacity"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/internal/phrase"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
)

// Annotations on a probe pod.

// Annotations returns what is written on a new probe. All that a hub has to know of a decision is in them.
func (p *Probe) Annotations(keys policy.Keys) map[string]string {
	annotations := map[string]string{
		keys.ProbeRequirements(): p.Requirements.String(), keys.ProbeSince(): p.Since.UTC().Format(time.RFC3339),
		keys.ProbeTries(): strconv.Itoa(p.Tries), keys.ProbeNext(): p.NextProbe.UTC().Format(time.RFC3339),
	}
	if p.Capacity == capacity.OnDemand {
		annotations[keys.ProbeCapacity()] = string(capacity.OnDemand)
	}
	if p.Namespaces != nil {
		annotations[keys.ProbeNamespaces()] = strings.Join(p.Namespaces, ",")
	}
	if p.Relapses > 0 {
		annotations[keys.ProbeRelapses()] = strconv.Itoa(p.Relapses)
	}
	return annotations
}

// ProbeOf reads the facts off a probe pod; false when it is none, is over or is being deleted: such a one is gone.
func ProbeOf(keys policy.Keys, pod *corev1.Pod) (Probe, bool) {
	if pod.DeletionTimestamp != nil || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		return Probe{}, false
	}
	shape, err := capacity.ParseRequirements(pod.Annotations[keys.ProbeRequirements()])
	since, err2 := time.Parse(time.RFC3339, pod.Annotations[keys.ProbeSince()])
	next, err3 := time.Parse(time.RFC3339, pod.Annotations[keys.ProbeNext()])
	tries, ok := phrase.Number(pod.Annotations[keys.ProbeTries()], 1<<20)
	if err != nil || err2 != nil || err3 != nil || !ok {
		return Probe{}, false
	}
	p := Probe{Name: pod.Name, UID: pod.UID, Decision: Decision{Requirements: shape, Capacity: capacity.Spot, Since: since, Tries: tries, NextProbe: next}, Gated: len(pod.Spec.SchedulingGates) > 0}
	if pod.Annotations[keys.ProbeCapacity()] == string(capacity.OnDemand) {
		p.Capacity = capacity.OnDemand
	}
	if names := pod.Annotations[keys.ProbeNamespaces()]; names != "" {
		p.Namespaces = strings.Split(names, ",")
	}
	if n, ok := phrase.Number(pod.Annotations[keys.ProbeRelapses()], 1<<20); ok {
		p.Relapses = n
	}
	if !p.Gated {
		if p.OpenedAt, err = time.Parse(time.RFC3339, pod.Annotations[keys.ProbeOpened()]); err != nil {
			p.OpenedAt = pod.CreationTimestamp.Time // a member that knows no gates
		}
	}
	if pod.Spec.NodeName != "" {
		p.BoundAt = pod.CreationTimestamp.Time
		for i := range pod.Status.Conditions {
			if c := &pod.Status.Conditions[i]; c.Type == corev1.PodScheduled && c.Status == corev1.ConditionTrue {
				p.BoundAt = c.LastTransitionTime.Time
			}
		}
	}
	return p, true
}

// ProbeName is the same for the same decision and try, so that a probe is made once.
func ProbeName(text string, v *Decision) string {
	hash := fnv.New64a()
	_, _ = fmt.Fprintf(hash, "%s %d", text, v.Since.Unix()) // a hash never fails
	if v.Capacity == capacity.OnDemand {
		_, _ = fmt.Fprint(hash, " ", capacity.OnDemand)
	}
	return fmt.Sprintf("plimsoll-probe-%016x-%d", hash.Sum64(), v.Tries)
}
