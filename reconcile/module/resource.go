package module

import (
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// A Resource is a custom kind about which members ask the hub: how it is converted, what it should have, and whether one may
// be stored. The hub never holds a cluster up: without it, the rules in the kind's definition stand alone.
//
// Its functions need nothing but the question, so every replica answers, whoever owns the member. They may be called
// concurrently, with whatever somebody in a member wrote.
type Resource struct {
	// Title is how the kind is called in sentences, in the plural and as one word: "Backups". The condition of a member that
	// reports whether the kind is current there has this name.
	Title string
	// Group, Kind and Plural as in the definition. The plural is unique in a hub: it is in the URLs that members call.
	Group, Kind, Plural string
	// Versions are all that are served. The first one is stored, and it is the one that Review is asked about, and that owner
	// references of Parts name.
	Versions []string
	// AddToScheme makes the Go types of all versions known, by which the memory that a question may take is bounded.
	AddToScheme func(*runtime.Scheme) error
	// Subresources that Review is asked about as well, such as scale.
	Subresources []string

	// Definition is kept current in members that have it. Nil: the hub leaves definitions of the kind alone.
	Definition *Definition
	// InstallWith says what makes the definition and the configuration for validations in a member, as in "`make install`".
	InstallWith string

	// Parts are resources of Kubernetes' own of which an object of the kind controls one of its own name, as its controlling owner. A
	// member that is registered for the kind lets the hub write these and no others of the resource. Such Deployments reach nothing
	// of their node, and their pods run as the service account of that name, if there is one among the parts; such Services take no
	// addresses over; such autoscalers scale the Workload of that name, unless it is somebody else's.
	Parts []schema.GroupResource
	// Label is the label whose value, on the pods of an object of the kind, is the object's name. Deployments, Services and
	// PodDisruptionBudgets among the parts must select by it, and by nothing else. ServiceAccounts among the parts, and the Workload, should have it as
	// well: a member's API server compares each Deployment with every account of the namespace that does not, and each autoscaler with every
	// workload. Empty: they may select any pods of
	// the namespace.
	Label string
	// Workload is the kind of the part whose replicas are those of the object: its Deployment, say. Such a kind has the subresource
	// scale, and a FleetPlacement may name it. Empty: none may.
	Workload schema.GroupVersionKind

	// Convert rewrites an object, as JSON, in another version; it may keep or return the object's memory. Its errors name what is
	// wrong and quote no value. Nil: the kind has one version, or versions that differ in nothing.
	Convert func(object []byte, desiredAPIVersion string) ([]byte, error)
	// Complete sets labels that an object should have and lacks, whatever its version, and reports whether it changed any. Nil:
	// members do not ask.
	Complete func(object *metav1.ObjectMeta) bool
	// Review judges an object that is about to be stored. Nil: members do not ask.
	Review func(Review) (Judgement, error)
}

// A Review is one question whether something may be stored.
type Review struct {
	// Object is what is to be stored, as JSON in the first of the versions; Old what it replaces, empty when it is new.
	Object, Old []byte
	// Subresource that is written; "" for the object itself.
	Subresource string
}

// A Judgement is the answer. Nothing refused: it may be stored.
type Judgement struct {
	Refusals field.ErrorList
	Warnings []string
}

// reserved are what the hub's URLs end in for other calls.
var reserved = map[string]bool{"pods": true, "convert": true}

func (r *Resource) validate() error {
	var errs []error
	for _, must := range []struct{ what, value string }{{"Title", r.Title}, {"Group", r.Group}, {"Kind", r.Kind}} {
		if must.value == "" {
			errs = append(errs, fmt.Errorf("resource %q: %s is empty", r.Plural, must.what))
		}
	}
	if len(validation.IsDNS1035Label(r.Plural)) > 0 || reserved[r.Plural] {
		errs = append(errs, fmt.Errorf("resource %q: the plural must be a DNS label, and neither pods nor convert", r.Plural))
	}
	if len(r.Versions) == 0 || r.AddToScheme == nil {
		errs = append(errs, fmt.Errorf("resource %q: it has no versions, or no Go types", r.Plural))
	}
	if r.Label != "" {
		for _, problem := range validation.IsQualifiedName(r.Label) {
			errs = append(errs, fmt.Errorf("resource %q: Label %q: %s", r.Plural, r.Label, problem))
		}
	}
	if d := r.Definition; d != nil && d.Name() != r.Plural+"."+r.Group {
		errs = append(errs, fmt.Errorf("resource %q: its definition is %s", r.Plural, d.Name()))
	}
	return errors.Join(errs...)
}

// StoredAPIVersion is the API version in which objects of the kind are stored.
func (r *Resource) StoredAPIVersion() string { return r.Group + "/" + r.Versions[0] }

// IsOf reports whether an API version is one of the kind's.
func (r *Resource) IsOf(apiVersion string) bool {
	for _, version := range r.Versions {
		if r.Group+"/"+version == apiVersion {
			return true
		}
	}
	return false
}
