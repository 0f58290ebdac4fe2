// Package pages is the example of docs/write-a-reconciler.md: a kind Page, whose text becomes a ConfigMap.
package pages

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/plimsoll-dev/plimsoll/reconcile"
)

// A Page is a text that is to be served.
type Page struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   PageSpec   `json:"spec"`
	Status PageStatus `json:"status,omitempty"`
}

// PageSpec says what is to be served.
type PageSpec struct {
	Text string `json:"text"`
	// Footer is the name of a ConfigMap whose key "footer" goes below the text; empty: none.
	Footer string `json:"footer,omitempty"`
}

// PageStatus is the framework's part, and what is our own.
type PageStatus struct {
	reconcile.Status `json:",inline"`

	Length int `json:"length,omitempty"`
}

// PageList is a list of Pages.
type PageList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Page `json:"items"`
}

// CommonStatus lets the framework keep conditions and the rest of the status.
func (p *Page) CommonStatus() *reconcile.Status { return &p.Status.Status }

// DeepCopyObject is what controller-gen makes for larger kinds.
func (p *Page) DeepCopyObject() runtime.Object {
	out := *p
	meta, status := &p.ObjectMeta, &p.Status.Status
	meta.DeepCopyInto(&out.ObjectMeta)
	status.DeepCopyInto(&out.Status.Status)
	return &out
}

// DeepCopyObject copies the list.
func (l *PageList) DeepCopyObject() runtime.Object {
	out := *l
	out.Items = make([]Page, len(l.Items))
	for i := range l.Items {
		out.Items[i] = *l.Items[i].DeepCopyObject().(*Page)
	}
	return &out
}

// AddToScheme makes the kind known.
func AddToScheme(scheme *runtime.Scheme) error {
	version := schema.GroupVersion{Group: "example.com", Version: "v1"}
	scheme.AddKnownTypes(version, &Page{}, &PageList{})
	metav1.AddToGroupVersion(scheme, version)
	return nil
}
