package bundle

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/plimsoll-dev/plimsoll/reconcile"
)

// Group and Kind of Bundles.
const (
	Group = "example.com"
	Kind  = "Bundle"
)

var (
	// Stored is the version in which Bundles are stored and reconciled.
	Stored = schema.GroupVersion{Group: Group, Version: "v1"}
	// Older is a version whose lists are words with commas between them.
	Older = schema.GroupVersion{Group: Group, Version: "v1alpha1"}
)

// A Bundle is several ConfigMaps in one.
type Bundle struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   Spec   `json:"spec"`
	Status Status `json:"status,omitempty"`
}

// Spec says what is in a Bundle, and where it goes.
type Spec struct {
	// Sources are the ConfigMaps in the Bundle's namespace whose key ca.crt it has, one after the other.
	Sources []string `json:"sources"`
	// Into is the name of the ConfigMap with all of them. Default: the Bundle's.
	Into string `json:"into,omitempty"`
	// To are further namespaces, into which that is mirrored.
	To []string `json:"to,omitempty"`
	// After is a Deployment in the Bundle's namespace that has to be available first. Default: none.
	After string `json:"after,omitempty"`
}

// Status is the framework's part, and what is our own.
type Status struct {
	reconcile.Status `json:",inline"`

	Bytes int `json:"bytes,omitempty"`
}

// OlderBundle is a Bundle in the older version.
type OlderBundle struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec struct {
		Sources string `json:"sources"`
		Into    string `json:"into,omitempty"`
		To      string `json:"to,omitempty"`
		After   string `json:"after,omitempty"`
	} `json:"spec"`
	Status Status `json:"status,omitempty"`
}

// List is a list of Bundles.
type List struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Bundle `json:"items"`
}

// CommonStatus lets the framework keep conditions and the rest of the status.
func (b *Bundle) CommonStatus() *reconcile.Status { return &b.Status.Status }

// DeepCopyObject is what controller-gen makes for larger kinds.
func (b *Bundle) DeepCopyObject() runtime.Object {
	out := *b
	b.DeepCopyInto(&out.ObjectMeta)
	out.Spec.Sources, out.Spec.To = slices.Clone(b.Spec.Sources), slices.Clone(b.Spec.To)
	b.Status.DeepCopyInto(&out.Status.Status)
	return &out
}

// DeepCopyObject copies a Bundle in the older version.
func (b *OlderBundle) DeepCopyObject() runtime.Object {
	out := *b
	b.DeepCopyInto(&out.ObjectMeta)
	b.Status.DeepCopyInto(&out.Status.Status)
	return &out
}

// DeepCopyObject copies the list.
func (l *List) DeepCopyObject() runtime.Object {
	out := *l
	out.Items = make([]Bundle, len(l.Items))
	for i := range l.Items {
		out.Items[i] = *l.Items[i].DeepCopyObject().(*Bundle)
	}
	return &out
}

// AddToScheme makes the version known that is reconciled.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypeWithName(Stored.WithKind(Kind), &Bundle{})
	scheme.AddKnownTypeWithName(Stored.WithKind(Kind+"List"), &List{})
	metav1.AddToGroupVersion(scheme, Stored)
	return nil
}

// addVersions makes all versions known.
func addVersions(scheme *runtime.Scheme) error {
	scheme.AddKnownTypeWithName(Older.WithKind(Kind), &OlderBundle{})
	return AddToScheme(scheme)
}
