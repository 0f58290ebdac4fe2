package events

import (
	"fmt"
	"hash/fnv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/reconcile/internal/object"
)

// Recorder records Events about one object. It implements that of package reconcile.
type Recorder struct {
	sink  *Sink
	about corev1.ObjectReference
}

// About makes the recorder of a request.
func (s *Sink) About(obj client.Object) *Recorder {
	return &Recorder{sink: s, about: corev1.ObjectReference{
		APIVersion: s.options.Kind.GroupVersion().String(), Kind: s.options.Kind.Kind,
		Namespace: obj.GetNamespace(), Name: obj.GetName(), UID: obj.GetUID(), ResourceVersion: obj.GetResourceVersion(),
	}}
}

// Normal implements that of package reconcile.
func (r *Recorder) Normal(reason, format string, args ...any) {
	r.record(corev1.EventTypeNormal, reason, fmt.Sprintf(format, args...))
}

// Warning implements that of package reconcile.
func (r *Recorder) Warning(reason, format string, args ...any) {
	r.record(corev1.EventTypeWarning, reason, fmt.Sprintf(format, args...))
}

func (r *Recorder) record(kind, reason, message string) {
	r.sink.record(occurrence{about: r.about, kind: kind, reason: reason, message: object.Clip(message)})
}

// occurrence is something to record an Event of.
type occurrence struct {
	about                 corev1.ObjectReference
	kind, reason, message string
}

// sameness is what two occurrences of the same Event have in common.
type sameness struct {
	about                 string
	kind, reason, message string
}

func (h occurrence) sameness() sameness {
	about := string(h.about.UID)
	if about == "" {
		about = h.about.Namespace + "/" + h.about.Name
	}
	return sameness{about: about, kind: h.kind, reason: h.reason, message: h.message}
}

// standing reports whether what happened stands until somebody fixes it. Such an Event has a name by what it says, so that a
// process that has just started does not write again what the one before it wrote.
func (h occurrence) standing() bool { return h.kind == corev1.EventTypeWarning && h.about.UID != "" }

// maxEventPrefix leaves room for the suffix in an Event's name.
const maxEventPrefix = 230

// event is the first Event of an occurrence. Events of objects without a namespace live in default.
func (h occurrence) event(component string, now metav1.Time) *corev1.Event {
	namespace := h.about.Namespace
	if namespace == "" {
		namespace = metav1.NamespaceDefault
	}
	prefix := h.about.Name[:min(len(h.about.Name), maxEventPrefix)]
	suffix := now.UnixNano()
	if h.standing() {
		sum := fnv.New64a()
		fmt.Fprintf(sum, "%s\x00%s\x00%s\x00%s", component, h.about.UID, h.reason, h.message)
		suffix = int64(sum.Sum64() >> 1)
	}
	return &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("%s.%x", prefix, suffix)},
		InvolvedObject: h.about, Type: h.kind, Reason: h.reason, Message: h.message,
		FirstTimestamp: now, LastTimestamp: now, Count: 1,
		Source: corev1.EventSource{Component: component}, ReportingController: component,
	}
}
