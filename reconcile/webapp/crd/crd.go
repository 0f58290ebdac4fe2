// Package crd is what a member is to know of the WebApp kind: the CustomResourceDefinition that controller-gen makes from
// the kind's packages, and the decision whether one in a member may be brought to it.
//
// It writes nothing itself. `plimsoll webapps install` makes the definition, the hub keeps it current.
package crd

import (
	_ "embed" // the definition
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	v1 "github.com/plimsoll-dev/plimsoll/reconcile/webapp/v1"
)

//go:embed apps.plimsoll.dev_webapps.yaml
var definition []byte

const (
	// Name of the definition.
	Name = "webapps.apps.plimsoll.dev"
	// Revision counts the changes of the definition; a test tells when it has to be raised. A Plimsoll leaves alone what a
	// newer one wrote.
	Revision = 1
	// RevisionAnnotation on a definition is the Revision of the Plimsoll that wrote it.
	RevisionAnnotation = "apps.plimsoll.dev/revision"
	// KeepAnnotation with the value "false" on a definition keeps the hub from changing it: its owner does, and the hub tells
	// whether it is current.
	KeepAnnotation = "apps.plimsoll.dev/keep-current"
)

// New returns the definition as it is without a hub: v1 is served, and the older versions are not, because nobody converts
// them yet.
func New() *apiextensionsv1.CustomResourceDefinition {
	made := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict(definition, made); err != nil {
		panic(fmt.Sprintf("the embedded CRD of WebApps: %v", err)) // a broken build
	}
	made.Annotations = map[string]string{RevisionAnnotation: strconv.Itoa(Revision)}
	made.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.NoneConverter}
	for i := range made.Spec.Versions {
		made.Spec.Versions[i].Served = made.Spec.Versions[i].Name == v1.GroupVersion.Version
	}
	return made
}

// Converting returns the definition with all versions served, converted at an URL that a certificate of bundle proves; an
// empty bundle: one of the system's.
func Converting(url string, bundle []byte) *apiextensionsv1.CustomResourceDefinition {
	made := New()
	made.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{
		Strategy: apiextensionsv1.WebhookConverter,
		Webhook: &apiextensionsv1.WebhookConversion{
			ClientConfig:             &apiextensionsv1.WebhookClientConfig{URL: &url, CABundle: bundle},
			ConversionReviewVersions: []string{"v1"},
		},
	}
	for i := range made.Spec.Versions {
		made.Spec.Versions[i].Served = true
	}
	return made
}

// ForMember returns what `plimsoll webapps install` is to apply: New, but with the conversion that a hub has set already.
func ForMember(there *apiextensionsv1.CustomResourceDefinition) *apiextensionsv1.CustomResourceDefinition {
	made := New()
	if there != nil && there.Spec.Conversion != nil && there.Spec.Conversion.Strategy == apiextensionsv1.WebhookConverter {
		made.Spec.Conversion = there.Spec.Conversion.DeepCopy()
		for i := range made.Spec.Versions {
			made.Spec.Versions[i].Served = true
		}
	}
	return made
}

// Refusal says why a definition in a member must not be replaced by ours; "" when it may be. A stored version is never
// lowered: what is stored must stay readable, and what a newer Plimsoll wrote is its own.
func Refusal(there *apiextensionsv1.CustomResourceDefinition) string {
	if text, ok := there.Annotations[RevisionAnnotation]; ok {
		revision, err := strconv.Atoi(text)
		if err != nil || revision < 0 {
			return fmt.Sprintf("annotation %s: %.32q: must be a whole number; nobody knows which Plimsoll wrote this definition", RevisionAnnotation, text)
		}
		if revision > Revision {
			return fmt.Sprintf("a newer Plimsoll wrote revision %d of it, this one knows %d: update this one", revision, Revision)
		}
	}
	ours := New()
	for _, stored := range there.Status.StoredVersions {
		if !slices.ContainsFunc(ours.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Name == stored }) {
			return fmt.Sprintf("objects are stored as %s, which this Plimsoll does not know: update it, or migrate them and take %s out of status.storedVersions", stored, stored)
		}
	}
	return ""
}

// Kept tells whether the hub may change a definition in a member.
func Kept(there *metav1.ObjectMeta) bool { return there.Annotations[KeepAnnotation] != "false" }

// Differs says in what a definition in a member differs from ours, as far as the hub caches it; "" when in nothing.
func Differs(there, ours *apiextensionsv1.CustomResourceDefinition) string {
	if is := there.Annotations[RevisionAnnotation]; is != ours.Annotations[RevisionAnnotation] {
		return fmt.Sprintf("annotation %s is %.32q, not %q", RevisionAnnotation, is, ours.Annotations[RevisionAnnotation])
	}
	if !sameJSON(there.Spec.Conversion, ours.Spec.Conversion) {
		return "its conversion does not lead to this hub"
	}
	for _, want := range ours.Spec.Versions {
		if !slices.ContainsFunc(there.Spec.Versions, func(is apiextensionsv1.CustomResourceDefinitionVersion) bool {
			return is.Name == want.Name && is.Served == want.Served && is.Storage == want.Storage
		}) {
			return fmt.Sprintf("version %s is not served or stored as it should be", want.Name)
		}
	}
	return ""
}

func sameJSON(a, b any) bool {
	first, errA := json.Marshal(a)
	second, errB := json.Marshal(b)
	return errA == nil && errB == nil && string(first) == string(second)
}
