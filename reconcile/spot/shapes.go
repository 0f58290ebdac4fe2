package spot

import (
	"crypto/rand"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/capacity"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/internal/shapes"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/internal/when"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/nodes"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/plan"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/shortage"
)

// annotationShape carries the text of a shape on cached objects. It is never written to a member: it stands in for the spec
// from which it was read, which is not kept. Its name is secret, so that nobody in a member can write one.
var annotationShape = "shape.plimsoll.internal." + rand.Text()

// internedShapes holds one copy of the text of each shape, however many pods and templates have it, internedLabels one of
// the keys and values of labels, of which nodes have many and mostly the same, and parsedShapes what shapes say that are used often.
var (
	internedShapes, internedLabels shapes.Interned
	parsedShapes                   shapes.Parser
)

// keepShape notes the shape of a pod, or of a template, on the object that is cached; one that is too long to be read is not known. known is
// its text, if it was read already.
func keepShape(into client.Object, known string, spec *corev1.PodSpec, name string, capacityType capacity.Labels) {
	if known == "" {
		known = internedShapes.Text(capacity.RequirementsOf(spec, into.GetNamespace(), name, capacityType).String())
	}
	if len(known) > capacity.MaxText {
		return
	}
	annotations := into.GetAnnotations()
	if annotations == nil {
		annotations = make(map[string]string, 1)
		into.SetAnnotations(annotations)
	}
	annotations[annotationShape] = known
}

// keepTemplate notes what a template says of its pods: their labels and their shape.
func keepTemplate(into client.Object, from, template *corev1.PodTemplateSpec, capacityType capacity.Labels) {
	template.Labels = from.Labels
	keepShape(into, "", &from.Spec, "", capacityType)
}

// shapeOf reads what keepShape noted; false when there is nothing.
func shapeOf(obj client.Object) (capacity.Requirements, bool) {
	return requirementsOf(obj.GetAnnotations()[annotationShape])
}

// requirementsOf reads the text of a shape; false when there is none.
func requirementsOf(text string) (capacity.Requirements, bool) {
	if text == "" {
		return capacity.Requirements{}, false
	}
	shape, err := parsedShapes.Parse(text)
	if err != nil {
		return capacity.Requirements{}, false
	}
	return shape.Requirements, true
}

// template is what is known about an owner's pod template.
type template struct {
	labels map[string]string
	shape  string     // as text, which the cached object has as well
	sum    shapes.Sum // of shape

	// Most templates leave all nodes and domains open, and their shape need not be looked at.
	narrow, spread bool

	memo       nodes.ContradictionMemo
	spreadMemo nodes.SpreadMemo
}

// templateOf reads what keepTemplate noted on a cached object; nil when there is nothing.
func templateOf(obj client.Object, labels map[string]string) *template {
	text := obj.GetAnnotations()[annotationShape]
	if text == "" {
		return nil
	}
	shape, err := parsedShapes.Parse(text)
	if err != nil {
		return nil
	}
	return &template{labels: labels, shape: text, sum: shapes.SumOf(text), narrow: len(shape.Needs) > 0, spread: len(shape.Constraints) > 0}
}

// needs is what the template asks of nodes; nil: nothing.
func (t *template) needs() capacity.NodeRequirements { return t.parsed().Needs }

// spreads are the template's topology spread constraints that must hold, and what it asks of nodes.
func (t *template) spreads() ([]corev1.TopologySpreadConstraint, capacity.NodeRequirements) {
	shape := t.parsed()
	return shape.Constraints, shape.Needs
}

func (t *template) parsed() *shapes.Shape {
	shape, err := parsedShapes.Parse(t.shape)
	if err != nil {
		return &shapes.Shape{} // templateOf has read it
	}
	return shape
}

// learnShape takes the owner's shape from a pod that no node has yet, for a member may add to what the template asks for. Which shape a pod
// had before a node had it is kept for bound pods as well if that matters: a pod that was made on its node shows nothing about room
// there. It is kept as a sum: pods are many, and no budget counts what is not on the cached ones. The caller holds the owner's mu.
func (d *directory) learnShape(o *owner, pod *corev1.Pod, template string, alive, matters bool) {
	switch text := pod.Annotations[annotationShape]; {
	case alive && text != "":
		if o.shown == nil {
			o.shown = make(map[types.UID]shapes.Sum, 1)
		}
		o.shown[pod.UID] = shapes.SumOf(text)
		d.keepPodShape(o, text, template)
	case !alive || pod.Spec.NodeName == "" || !matters:
		delete(o.shown, pod.UID)
	}
}

// keepPodShape keeps the shape of an owner's pods where it is not that of the template. Where there is no room the owner counts as having the shape
// of its template. The caller holds the owner's mu.
func (d *directory) keepPodShape(o *owner, text, template string) {
	if text == template {
		text = ""
	}
	d.podShapes.Set(&o.shape, o.namespace, text)
}

// shownBy returns what a pod of an owner asked for before a node had it. False: it was not seen then, or it asked for something else than
// the owner's newest pod and the template; such a pod ends no decision that capacity is dry, and a probe does.
func (d *directory) shownBy(o *owner, pod types.UID) (capacity.Requirements, bool) {
	d.mu.RLock()
	tmpl := o.template
	d.mu.RUnlock()
	o.mu.Lock()
	sum, seen := o.shown[pod]
	own := o.shape
	o.mu.Unlock()
	switch {
	case seen && sum == own.Sum:
		return requirementsOf(own.Text)
	case seen && tmpl != nil && sum == tmpl.sum:
		return requirementsOf(tmpl.shape)
	}
	return capacity.Requirements{}, false
}

// shapeTextLocked returns the shape of an owner's pods, as text; empty when nothing shows it. The caller holds the directory's mu.
func (o *owner) shapeTextLocked() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.shape.Text == "" && o.template != nil {
		return o.template.shape
	}
	return o.shape.Text
}

// drySinceLocked returns since when capacity of each type has been dry for an owner's pods; zero: it is not. The caller holds mu.
func (d *directory) drySinceLocked(o *owner) (spot, onDemand time.Time) {
	if found, since := d.contradictionLocked(o); found == plan.ContradictionSpot {
		spot = since // as far as this member's nodes show, which is as good as dry
	}
	if !d.droughts.AnyDry.Load() {
		return spot, onDemand
	}
	if shape, ok := requirementsOf(o.shapeTextLocked()); ok {
		spot = when.Earlier(spot, d.droughts.Since(capacity.Spot, shape, o.namespace))
		onDemand = d.droughts.Since(capacity.OnDemand, shape, o.namespace)
	}
	return spot, onDemand
}

// mix is the arithmetic of the workload as it holds now.
func (s *standing) mix() policy.Mix {
	mix := s.policy.Mix()
	mix.Dry, mix.OnDemandDry = s.dry, s.onDemandDry && s.policy.Valid()
	return mix
}

// texts returns the texts of the shapes of all owners that want replicas, and the namespaces of the owners of which only bound pods are known: what these
// ask for is not known before the object itself is, and after a start ReplicaSets may come to the cache later than pods.
func (d *directory) texts() (all []string, unseen map[string]struct{}) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	all, unseen = make([]string, 0, len(d.owners)), map[string]struct{}{}
	for _, o := range d.owners {
		switch text := o.shapeTextLocked(); {
		case text != "" && (o.kind == "" || o.replicas > 0):
			all = append(all, text)
		case text == "" && o.kind == "":
			unseen[o.namespace] = struct{}{}
		}
	}
	return all, unseen
}

// forgetDroughts ends the decisions on shortages that no owner has any more, as far as owners are known.
func (d *directory) forgetDroughts(now time.Time) {
	d.droughts.Forget(func(stand []shortage.Standing) []bool {
		var unseen map[string]struct{} // stays empty where it is too early to search: then all are needed
		needed := d.needs.Needed(&parsedShapes, stand, func() (all []string) {
			all, unseen = d.texts()
			return all
		})
		for i := range stand {
			namespaces := stand[i].Namespaces // nil: all
			needed[i] = needed[i] || (namespaces == nil && len(unseen) > 0) ||
				slices.ContainsFunc(namespaces, func(name string) bool { _, some := unseen[name]; return some })
		}
		return needed
	}, now)
}

// drySince returns since when capacity of each type has been dry for an owner's pods; zero: it is not.
func (d *directory) drySince(o *owner) (spot, onDemand time.Time) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return d.drySinceLocked(o)
}

// shape returns the shape of an owner's pods; false when nothing shows it: the zero value would be the easiest to place.
func (d *directory) shape(o *owner) (capacity.Requirements, bool) {
	d.mu.RLock()
	text := o.shapeTextLocked()
	d.mu.RUnlock()
	return requirementsOf(text)
}

// templateShape returns the shape of an owner's pods if it has what the template asks of nodes, and else that of the template: a pod may
// have been adopted that asks for less. False: there is no template that is known.
func (d *directory) templateShape(o *owner) (capacity.Requirements, bool) {
	d.mu.RLock()
	tmpl := o.template
	d.mu.RUnlock()
	if tmpl == nil {
		return capacity.Requirements{}, false
	}
	asked := tmpl.parsed().Requirements
	if shape, ok := d.shape(o); ok && shape.NarrowsNodesLike(asked) {
		return shape, true
	}
	return asked, true
}
