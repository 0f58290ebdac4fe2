package spot

import (
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/capacity"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/internal/when"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/nodes"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/plan"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
)

// annotationShape carries the text of a shape on cached objects. It is never written to a member: it stands in for the spec
// from which it was read, which is not kept.
const annotationShape = "shape.plimsoll.internal"

// internedShapes holds one copy of the text of each shape, however many pods and templates have it, and internedLabels one of
// the keys and values of labels, of which nodes have many and mostly the same.
var internedShapes, internedLabels = interned{texts: map[string]string{}}, interned{texts: map[string]string{}}

// interned keeps one copy of equal texts. It is safe for concurrent use.
type interned struct {
	mu    sync.Mutex
	texts map[string]string
	bytes int // of the texts
}

// maxInterned texts of maxInternedBytes together bound what texts that change all the time can take: shapes, as some autoscalers make them,
// and names of nodes. No budget of a cache counts them, and who changes a template again and again must not fill the memory with them.
const maxInterned, maxInternedBytes = 1 << 14, 8 << 20

func (in *interned) text(s string) string {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.textLocked(s)
}

// labels returns a copy of labels that shares its texts with others.
func (in *interned) labels(from map[string]string) map[string]string {
	if from == nil {
		return nil
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	into := make(map[string]string, len(from))
	for key, value := range from {
		into[in.textLocked(key)] = in.textLocked(value)
	}
	return into
}

func (in *interned) textLocked(s string) string {
	if known, ok := in.texts[s]; ok {
		return known
	}
	if len(s) > capacity.MaxText {
		return s
	}
	if in.bytes += len(s); len(in.texts) >= maxInterned || in.bytes > maxInternedBytes {
		clear(in.texts)
		in.bytes = len(s)
	}
	in.texts[s] = s
	return s
}

// keepShape notes the shape of a pod, or of a template, on the object that is cached; one that is too long to be read is not known. known is
// its text, if it was read already.
func keepShape(into client.Object, known string, spec *corev1.PodSpec, name string, capacityType capacity.Labels) {
	if known == "" {
		known = internedShapes.text(capacity.RequirementsOf(spec, into.GetNamespace(), name, capacityType).String())
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
	text := obj.GetAnnotations()[annotationShape]
	if text == "" {
		return capacity.Requirements{}, false
	}
	shape, err := capacity.ParseRequirements(text)
	return shape, err == nil
}

// template is what is known about an owner's pod template.
type template struct {
	labels map[string]string
	shape  capacity.Requirements
	text   string // of shape
	needs  capacity.NodeRequirements
	memo   nodes.ContradictionMemo

	constraints []corev1.TopologySpreadConstraint // that must hold
	spreadMemo  nodes.SpreadMemo
}

// templateOf reads what keepTemplate noted on a cached object; nil when there is nothing.
func templateOf(obj client.Object, labels map[string]string) *template {
	shape, ok := shapeOf(obj)
	if !ok {
		return nil
	}
	return &template{labels: labels, shape: shape, text: obj.GetAnnotations()[annotationShape], needs: capacity.NodeRequirementsOf(shape), constraints: shape.SpreadConstraints()}
}

// learnShape takes the owner's shape from a pod that no node has yet, for a member may add to what the template asks for.
// The caller holds mu.
func (o *owner) learnShape(pod *corev1.Pod) {
	if shape, ok := shapeOf(pod); ok {
		o.shape = &shape
	}
}

// shapeLocked returns the shape of an owner's pods; false when nothing shows it. The caller holds the directory's mu.
func (o *owner) shapeLocked() (capacity.Requirements, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case o.shape != nil:
		return *o.shape, true
	case o.template != nil:
		return o.template.shape, true
	}
	return capacity.Requirements{}, false
}

// drySinceLocked returns since when capacity of each type has been dry for an owner's pods; zero: it is not. The caller holds mu.
func (d *directory) drySinceLocked(o *owner) (spot, onDemand time.Time) {
	if found, since := d.contradictionLocked(o); found == plan.ContradictionSpot {
		spot = since // as far as this member's nodes show, which is as good as dry
	}
	if !d.droughts.AnyDry.Load() {
		return spot, onDemand
	}
	if shape, ok := o.shapeLocked(); ok {
		spot, onDemand = when.Earlier(spot, d.droughts.Since(capacity.Spot, shape)), d.droughts.Since(capacity.OnDemand, shape)
	}
	return spot, onDemand
}

// mix is the arithmetic of the workload as it holds now.
func (s *standing) mix() policy.Mix {
	mix := s.policy.Mix()
	mix.Dry, mix.OnDemandDry = s.dry, s.onDemandDry && s.policy.Valid()
	return mix
}

// shapes returns those of all owners that want replicas.
func (d *directory) shapes() []capacity.Requirements {
	d.mu.RLock()
	defer d.mu.RUnlock()
	shapes := make([]capacity.Requirements, 0, len(d.owners))
	for _, o := range d.owners {
		if shape, ok := o.shapeLocked(); ok && (o.kind == "" || o.replicas > 0) {
			shapes = append(shapes, shape)
		}
	}
	return shapes
}

// drySince returns since when capacity of each type has been dry for an owner's pods; zero: it is not.
func (d *directory) drySince(o *owner) (spot, onDemand time.Time) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return d.drySinceLocked(o)
}

// shape returns the shape of an owner's pods; the zero value, which is the easiest to place, when nothing shows it.
func (d *directory) shape(o *owner) capacity.Requirements {
	d.mu.RLock()
	defer d.mu.RUnlock()
	shape, _ := o.shapeLocked()
	return shape
}
