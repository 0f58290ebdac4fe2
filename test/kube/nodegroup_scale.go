package kube

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// sight is what a group sees at one time.
type sight struct {
	waiting []*corev1.Pod    // that would fit into the group
	rooms   map[string]*room // of the nodes that take pods, by name
	busy    map[string]bool  // nodes that are not empty, or not ready
}

// look finds out what concerns the group, and forgets nodes that somebody else has removed. The caller holds mu, as for all
// that follows.
func (g *NodeGroup) look(nodes []corev1.Node, pods []corev1.Pod) sight {
	seen := sight{rooms: map[string]*room{}, busy: map[string]bool{}}
	there := map[string]bool{}
	for i := range nodes {
		name := nodes[i].Name
		if there[name] = g.nodes[name] != nil; !there[name] {
			continue
		}
		if open(&nodes[i]) {
			left := roomOf(g.capacity)
			seen.rooms[name] = &left
		}
		seen.busy[name] = !nodeReady(&nodes[i])
	}
	for name := range g.nodes {
		if !there[name] {
			delete(g.nodes, name)
		}
	}
	for i := range pods {
		g.lookAt(&pods[i], &seen)
	}
	return seen
}

// lookAt takes one pod into account.
func (g *NodeGroup) lookAt(pod *corev1.Pod, seen *sight) {
	switch name := pod.Spec.NodeName; {
	case unschedulable(pod) && fits(&pod.Spec, g.spec.Node.Labels, g.spec.Node.Taints):
		seen.waiting = append(seen.waiting, pod)
	case name == "" || finished(pod):
	default:
		if left := seen.rooms[name]; left != nil {
			left.take(&pod.Spec)
		}
		seen.busy[name] = seen.busy[name] || !onlyThere(pod)
	}
}

// open reports whether a node takes pods, or will when it is ready.
func open(node *corev1.Node) bool {
	for _, taint := range node.Spec.Taints {
		switch taint.Key {
		case ToBeDeletedTaint, InterruptionTaint, RebalanceTaint:
			return false
		}
	}
	return !node.Spec.Unschedulable && node.DeletionTimestamp == nil
}

// takeBack removes the nodes whose notice is over.
func (g *NodeGroup) takeBack(ctx context.Context, now time.Time) error {
	var problems []error
	for name, node := range g.nodes {
		if node.goesAt.IsZero() || now.Before(node.goesAt) {
			continue
		}
		err := g.cluster.RemoveNodes(ctx, name)
		if err == nil {
			delete(g.nodes, name)
		}
		problems = append(problems, err)
	}
	return errors.Join(problems...)
}

// register has the instances come whose time it is, unless the cloud is dry, and gives up those that did not come.
func (g *NodeGroup) register(ctx context.Context, now time.Time) error {
	var pending []time.Time
	var problems []error
	for _, at := range g.asked {
		switch {
		case !g.dry && now.Sub(at) >= g.spec.Registration:
			node := g.cluster.node(g.spec.Node, g.capacity)
			if err := g.cluster.client.Create(ctx, node); err != nil {
				problems = append(problems, err)
				pending = append(pending, at)
				continue
			}
			g.nodes[node.Name] = &groupsNode{}
		case now.Sub(at) >= g.spec.GiveUpAfter:
			g.pausedTo = now.Add(g.spec.BackOff)
		default:
			pending = append(pending, at)
		}
	}
	g.asked = pending
	return errors.Join(problems...)
}

// grow asks for instances for the pods that fit neither on a node nor on an instance that is on its way.
func (g *NodeGroup) grow(ctx context.Context, seen sight, now time.Time) error {
	if now.Before(g.pausedTo) {
		return nil
	}
	coming := make([]*room, 0, len(g.nodes)+len(g.asked))
	for name := range g.nodes {
		if left := seen.rooms[name]; left != nil {
			coming = append(coming, left)
		} else if _, listed := seen.busy[name]; !listed { // it was made since
			coming = append(coming, g.emptyRoom())
		}
	}
	for range g.asked {
		coming = append(coming, g.emptyRoom())
	}
	had := len(g.nodes) + len(g.asked)
	var fresh []*room
	var helped []*corev1.Pod
	for _, pod := range seen.waiting {
		if takenBy(coming, pod) {
			continue
		}
		if !takenBy(fresh, pod) {
			one := g.emptyRoom()
			if had+len(fresh) >= g.spec.Max || !one.take(&pod.Spec) {
				continue
			}
			fresh = append(fresh, one)
			g.asked = append(g.asked, now)
		}
		helped = append(helped, pod)
	}
	return g.report(ctx, helped, had)
}

func (g *NodeGroup) emptyRoom() *room {
	left := roomOf(g.capacity)
	return &left
}

func takenBy(rooms []*room, pod *corev1.Pod) bool {
	for _, left := range rooms {
		if left.take(&pod.Spec) {
			return true
		}
	}
	return false
}

// report says on pods that instances were asked for them, in the words that Cluster Autoscaler has for it, once on each pod.
func (g *NodeGroup) report(ctx context.Context, pods []*corev1.Pod, had int) error {
	message := fmt.Sprintf("pod triggered scale-up: [{%s %d->%d (max: %d)}]", g.spec.Name, had, len(g.nodes)+len(g.asked), g.spec.Max)
	var problems []error
	for _, pod := range pods {
		if g.reported[pod.UID] {
			continue
		}
		err := g.cluster.client.Create(ctx, scaleUpEvent(pod, message))
		g.reported[pod.UID] = err == nil
		problems = append(problems, client.IgnoreNotFound(err)) // the namespace has gone
	}
	return errors.Join(problems...)
}

func scaleUpEvent(pod *corev1.Pod, message string) *corev1.Event {
	now := metav1.Now()
	return &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: fmt.Sprintf("%s.%x", pod.Name, now.UnixNano())},
		InvolvedObject: corev1.ObjectReference{
			APIVersion: "v1", Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, ResourceVersion: pod.ResourceVersion,
		},
		Type: corev1.EventTypeNormal, Reason: "TriggeredScaleUp", Message: message,
		Source: corev1.EventSource{Component: AutoscalerComponent}, ReportingController: AutoscalerComponent,
		FirstTimestamp: now, LastTimestamp: now, Count: 1,
	}
}

// shrink taints nodes that have been empty for long enough, and deletes them when they had the taint for a time; one that got
// a pod meanwhile stays.
func (g *NodeGroup) shrink(ctx context.Context, seen sight, now time.Time) error {
	staying := len(g.nodes)
	for _, node := range g.nodes {
		if !node.deleteAt.IsZero() {
			staying--
		}
	}
	var problems []error
	for name, node := range g.nodes {
		busy, known := seen.busy[name]
		switch {
		case !known: // it has just come
		case busy && !node.deleteAt.IsZero():
			*node = groupsNode{goesAt: node.goesAt}
			problems = append(problems, g.cluster.UntaintNodes(ctx, ToBeDeletedTaint, name))
		case busy:
			node.emptySince = time.Time{}
		case node.emptySince.IsZero():
			node.emptySince = now
		case !node.deleteAt.IsZero() && !now.Before(node.deleteAt):
			problems = append(problems, g.cluster.RemoveNodes(ctx, name))
		case node.deleteAt.IsZero() && now.Sub(node.emptySince) >= g.spec.IdleFor && staying > g.spec.Min:
			staying--
			node.deleteAt = now.Add(g.spec.DeleteDelay)
			problems = append(problems, g.cluster.TaintNodes(ctx, toBeDeleted(now), name))
		}
	}
	return errors.Join(problems...)
}
