package webapp

import (
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/plimsoll-dev/plimsoll/reconcile/webapp/v1"
	"github.com/plimsoll-dev/plimsoll/reconcile/webapp/v1alpha1"
	"github.com/plimsoll-dev/plimsoll/reconcile/webapp/v1beta1"
)

// A spoke is a WebApp in an older version: it converts to and from the stored one, and to another older one by way of it.
type spoke interface {
	ConvertTo(hub *v1.WebApp) error
	ConvertFrom(hub *v1.WebApp) error
}

// stored is v1 in the place of a spoke.
type stored struct{ v1.WebApp }

// ConvertTo implements spoke.
func (s *stored) ConvertTo(hub *v1.WebApp) error {
	*hub = s.WebApp
	hub.Spec.SetDefaults() // like the older versions do, so that they only carry what was said
	return nil
}

// ConvertFrom implements spoke.
func (s *stored) ConvertFrom(hub *v1.WebApp) error {
	s.WebApp = *hub
	return nil
}

// versions are all that are served, by API version.
var versions = map[string]func() (object spoke, typeMeta *metav1.TypeMeta){
	v1.GroupVersion.String():       func() (spoke, *metav1.TypeMeta) { w := &stored{}; return w, &w.TypeMeta },
	v1beta1.GroupVersion.String():  func() (spoke, *metav1.TypeMeta) { w := &v1beta1.WebApp{}; return w, &w.TypeMeta },
	v1alpha1.GroupVersion.String(): func() (spoke, *metav1.TypeMeta) { w := &v1alpha1.WebApp{}; return w, &w.TypeMeta },
}

// Convert rewrites a WebApp, as JSON, in another version of its group. What the other version cannot express travels in
// the annotation [v1.CarryAnnotation]. Errors name what is wrong, and quote neither the object nor its annotations.
func Convert(object []byte, desiredAPIVersion string) ([]byte, error) {
	var is metav1.PartialObjectMetadata
	if err := json.Unmarshal(object, &is); err != nil {
		return nil, fmt.Errorf("not a Kubernetes object: %w", shortened(err))
	}
	if is.Kind != v1.Kind {
		return nil, fmt.Errorf("kind: %.64q: must be %s", is.Kind, v1.Kind)
	}
	newFrom, known := versions[is.APIVersion]
	if !known {
		return nil, fmt.Errorf("apiVersion: %.64q: is not a version of WebApp", is.APIVersion)
	}
	newTo, known := versions[desiredAPIVersion]
	if !known {
		return nil, fmt.Errorf("desiredAPIVersion: %.64q: is not a version of WebApp", desiredAPIVersion)
	}
	from, _ := newFrom()
	if err := json.Unmarshal(object, from); err != nil {
		return nil, fmt.Errorf("WebApp %s/%s: %w", is.Namespace, is.Name, shortened(err))
	}
	to, typeMeta := newTo()
	var hub v1.WebApp
	if err := from.ConvertTo(&hub); err != nil {
		return nil, fmt.Errorf("WebApp %s/%s: %w", is.Namespace, is.Name, err)
	}
	if err := v1.CheckSize(len(hub.Spec.Containers), len(hub.Spec.EnvFrom)); err != nil { // also those that it carried
		return nil, fmt.Errorf("WebApp %s/%s: %w", is.Namespace, is.Name, err)
	}
	if err := to.ConvertFrom(&hub); err != nil {
		return nil, fmt.Errorf("WebApp %s/%s: %w", is.Namespace, is.Name, err)
	}
	typeMeta.APIVersion, typeMeta.Kind = desiredAPIVersion, v1.Kind
	return json.Marshal(to)
}

// shortened keeps of a JSON error what kind of value was found where, and not the value.
func shortened(err error) error {
	switch e := err.(type) { //nolint:errorlint // the decoder returns these as they are
	case *json.UnmarshalTypeError:
		return fmt.Errorf("%s: must be %s", e.Field, e.Type)
	case *json.SyntaxError:
		return fmt.Errorf("no JSON at byte %d", e.Offset)
	}
	return fmt.Errorf("a value that cannot be read")
}
