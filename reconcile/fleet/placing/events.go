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
	eventMoved      = "Moved"      // The numbers of replicas that members are to run changed; the message has each change and why.
	eventMemberLost = "MemberLost" // A member was out of reach for longer than `clusterLossGrace`: its replicas are replaced in others.
	eventMemberBack = "MemberBack" // A lost member is in reach again: surplus replicas go once the plan is met.
	eventLeftBehind = "LeftBehind" // A member keeps replicas that the FleetPlacement no longer controls: it is registered no more, or was out of reach when the FleetPlacement was deleted.
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
				left = append(left, fmt.Sprintf("%s is no member any more: it keeps %d replicas, which are made up for elsewhere", was.Name, set.Replicas))
			}
		case now.State == v1alpha1.MemberLost && was.State != v1alpha1.MemberLost:
			lost = append(lost, now.Name+": "+now.Reason)
		case now.State != v1alpha1.MemberLost && was.State == v1alpha1.MemberLost:
			back = append(back, now.Name+" is in reach again: what is too much goes once the plan is met")
		}
	}
	c.event(it, corev1.EventTypeWarning, eventLeftBehind, "MakeUp", left)
	c.event(it, corev1.EventTypeWarning, eventMemberLost, "MakeUp", lost)
	c.event(it, corev1.EventTypeNormal, eventMemberBack, "TakeBack", back)
}
