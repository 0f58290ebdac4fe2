package v1

import (
	"encoding/json"
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// CarryAnnotation is where a WebApp in an older version carries what that version cannot express. It is never stored: the
// way back to v1 takes it off again.
const CarryAnnotation = "apps.plimsoll.dev/conversion-data"

const (
	// maxCarried is how many bytes the annotations of an object may have in Kubernetes, all together.
	maxCarried = 256 << 10
	// maxCarriedValues is how many values they may be: one of 2 bytes takes up to 144 once it is decoded. The largest WebApp that the
	// CRD permits has 20,000.
	maxCarriedValues = 32 << 10
)

// carried is the content of the annotation.
type carried struct {
	Spec   WebAppSpec   `json:"spec"`
	Status WebAppStatus `json:"status"`
}

// Carry puts hub into the metadata of an older version that was made from it, unless back, which is what that version
// alone would become again, says the same.
func Carry(into *metav1.ObjectMeta, hub, back *WebApp) error {
	into.Annotations = without(into.Annotations)
	if equality.Semantic.DeepEqual(hub.Spec, back.Spec) && equality.Semantic.DeepEqual(hub.Status, back.Status) {
		return nil
	}
	text, err := json.Marshal(carried{Spec: hub.Spec, Status: hub.Status})
	if err != nil {
		return fmt.Errorf("annotation %s: %w", CarryAnnotation, err)
	}
	if into.Annotations == nil {
		into.Annotations = map[string]string{}
	}
	into.Annotations[CarryAnnotation] = string(text)
	return nil
}

// Uncarry takes what an older version carries out of its metadata and into hub. Without any, spec and status of hub are
// empty. The error does not quote the annotation.
func Uncarry(from *metav1.ObjectMeta, hub *WebApp) error {
	from.DeepCopyInto(&hub.ObjectMeta)
	hub.Annotations = without(hub.Annotations)
	text, ok := from.Annotations[CarryAnnotation]
	if !ok {
		hub.Spec, hub.Status = WebAppSpec{}, WebAppStatus{}
		return nil
	}
	if len(text) > maxCarried {
		return fmt.Errorf("metadata.annotations[%s]: must have at most %d bytes", CarryAnnotation, maxCarried)
	}
	if valuesIn(text) > maxCarriedValues {
		return fmt.Errorf("metadata.annotations[%s]: must have at most %d values", CarryAnnotation, maxCarriedValues)
	}
	var data carried
	if err := json.Unmarshal([]byte(text), &data); err != nil {
		return fmt.Errorf("metadata.annotations[%s]: not written by a conversion: remove it, and check the rest", CarryAnnotation)
	}
	hub.Spec, hub.Status = data.Spec, data.Status
	return nil
}

// valuesIn is how many values a JSON text has at most: one for each comma and each bracket that opens, outside of strings.
func valuesIn(text string) (n int) {
	quoted := false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++ // the next one ends nothing
		case c == '"':
			quoted = !quoted
		case !quoted && (c == ',' || c == '{' || c == '['):
			n++
		}
	}
	return n
}

// without returns annotations without ours; nil when none is left. The map that it was given is not changed.
func without(annotations map[string]string) map[string]string {
	if _, ok := annotations[CarryAnnotation]; !ok {
		return annotations
	}
	if len(annotations) == 1 {
		return nil
	}
	rest := maps.Clone(annotations)
	delete(rest, CarryAnnotation)
	return rest
}

// SetMainPort gives a container the one port that an older version knows of, or none, and leaves alone what that version
// does not know: the port's name and where the Service listens. A readiness check of a port that is gone goes with it.
func (c *Container) SetMainPort(port *int32, name string) {
	switch {
	case port == nil:
		c.Ports, c.Readiness = nil, nil
	case len(c.Ports) == 0:
		c.Ports = []Port{{Name: name, ContainerPort: *port}}
	default:
		c.Ports[0].ContainerPort = *port
	}
}

// MainPort is the port that older versions know of; nil when there is none.
func (c *Container) MainPort() *int32 {
	if len(c.Ports) == 0 {
		return nil
	}
	return new(c.Ports[0].ContainerPort)
}

// SetSpotShare sets the share of spec.spot that an older version knows of, and takes the block away when nothing is left.
func (s *WebAppSpec) SetSpotShare(percentage, minOnDemand *int32) {
	before, beforeMin := s.SpotShare()
	if equality.Semantic.DeepEqual([]*int32{before, beforeMin}, []*int32{percentage, minOnDemand}) {
		return
	}
	if s.Spot == nil {
		s.Spot = &Spot{}
	}
	s.Spot.Percentage, s.Spot.MinOnDemand = percentage, minOnDemand
	if *s.Spot == (Spot{}) {
		s.Spot = nil
	}
}

// SpotShare is what older versions know of spec.spot.
func (s *WebAppSpec) SpotShare() (percentage, minOnDemand *int32) {
	if s.Spot == nil {
		return nil, nil
	}
	return s.Spot.Percentage, s.Spot.MinOnDemand
}
