package placing

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/plimsoll-dev/plimsoll/clusters/plain"
	"github.com/plimsoll-dev/plimsoll/reconcile/fleet/v1alpha1"
)

// Reasons of Events about a FleetPlacement.
const (
	eventMoved      = "Moved"      // The hub changed the number of replicas of members; the message has each change and its reason.
	eventMemberLost = "MemberLost" // A member was unreachable for longer than `clusterLossGrace`: other members replace its replicas.
	eventMemberBack = "MemberBack" // A lost member is reachable again: the hub removes surplus replicas when the plan is met.
	eventLeftBehind = "LeftBehind" // A member keeps replicas that the FleetPlacement no longer controls: it was unregistered, or was unreachable when the FleetPlacement was deleted.
)

// maxEventNote is the longest note that the Events API takes, in bytes.
const maxEventNote = 1024

// event records one Event that says it all. client-go takes several about one version of an object, with one reason, for one Event that
// repeats, and writes the note of one of them.
func (c *Controller) event(it *item, kind, reason, action string, says []string) {
	if c.options.Events != nil && len(says) > 0 {
		c.options.Events.Eventf(it.object, nil, kind, reason, action, "%s", plain.Text(strings.Join(says, "; "), maxEventNote))
	}
}

// announce records Events about what was decided, and about members that are lost or back. before is what the status said.
func (c *Controller) announce(it *item, before []v1alpha1.MemberStatus) {
	var moved, lost, back, left []string
	for i := range it.made {
		m := &it.made[i]
		c.metrics.moved(m)
		moved = append(moved, fmt.Sprintf("%s: %+d on %s: %s", m.Member, m.By, m.Capacity, m.Reason))
	}
	c.event(it, corev1.EventTypeNormal, eventMoved, "Move", moved)
	if it.stop != nil {
		return
	}
	is := map[string]*v1alpha1.MemberStatus{}
	for i := range it.object.Status.Members {
		is[it.object.Status.Members[i].Name] = &it.object.Status.Members[i]
	}
	for i := range before {
		was := &before[i]
		now := is[was.Name]
		switch {
		case now == nil:
			if set := setOf(was); set != nil && set.Replicas > 0 {
				left = append(left, fmt.Sprintf("%s is no longer a member: it keeps %d replicas, and other members replace them", was.Name, set.Replicas))
			}
		case now.State == v1alpha1.MemberLost && was.State != v1alpha1.MemberLost:
			lost = append(lost, now.Name+": "+now.Reason)
		case now.State != v1alpha1.MemberLost && was.State == v1alpha1.MemberLost:
			back = append(back, now.Name+" is reachable again: surplus replicas are removed when the plan is met")
		}
	}
	c.event(it, corev1.EventTypeWarning, eventLeftBehind, "MakeUp", left)
	c.event(it, corev1.EventTypeWarning, eventMemberLost, "MakeUp", lost)
	c.event(it, corev1.EventTypeNormal, eventMemberBack, "TakeBack", back)
}
