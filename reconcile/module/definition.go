package module

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// A Definition is a CustomResourceDefinition that a hub keeps current in members, and the decision whether one that is there may
// be brought to it. It writes nothing itself.
type Definition struct {
	made     *apiextensionsv1.CustomResourceDefinition // as it was read; nobody changes it
	revision int
}

// NewDefinition reads a definition, as controller-gen writes it. The revision counts its changes: a hub leaves alone what one
// with a higher revision wrote.
func NewDefinition(text []byte, revision int) (*Definition, error) {
	made := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict(text, made); err != nil {
		return nil, fmt.Errorf("read a CustomResourceDefinition: %w", err)
	}
	return &Definition{made: made, revision: revision}, nil
}

// MustDefinition is [NewDefinition] for one that is embedded: it panics when the build is broken.
func MustDefinition(text []byte, revision int) *Definition {
	d, err := NewDefinition(text, revision)
	if err != nil {
		panic(err)
	}
	return d
}

// Name of the definition: the plural, a dot and the group.
func (d *Definition) Name() string { return d.made.Name }

// RevisionAnnotation on a definition is the revision of the hub or CLI that wrote it.
func (d *Definition) RevisionAnnotation() string { return d.made.Spec.Group + "/revision" }

// KeepAnnotation with the value "false" on a definition keeps the hub from changing it: its owner does, and the hub says
// whether it is current.
func (d *Definition) KeepAnnotation() string { return d.made.Spec.Group + "/keep-current" }

// New returns a copy of the definition as it is without a hub: the stored version is served, and the others are not, because
// nobody converts them yet.
func (d *Definition) New() *apiextensionsv1.CustomResourceDefinition { return d.With(NoConversion()) }

// With returns a copy of the definition with a conversion. All versions are served where a webhook converts them.
func (d *Definition) With(conversion *apiextensionsv1.CustomResourceConversion) *apiextensionsv1.CustomResourceDefinition {
	made := d.made.DeepCopy()
	made.Annotations = map[string]string{d.RevisionAnnotation(): strconv.Itoa(d.revision)}
	made.Spec.Conversion = conversion.DeepCopy()
	for i := range made.Spec.Versions {
		made.Spec.Versions[i].Served = served(made.Spec.Versions[i], conversion)
	}
	return made
}

func served(version apiextensionsv1.CustomResourceDefinitionVersion, conversion *apiextensionsv1.CustomResourceConversion) bool {
	return version.Storage || conversion.Strategy == apiextensionsv1.WebhookConverter
}

// NoConversion is the conversion of a definition of which only the stored version is served.
func NoConversion() *apiextensionsv1.CustomResourceConversion {
	return &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.NoneConverter}
}

// WebhookConversion is the conversion by a webhook at an URL that a certificate of bundle proves; an empty bundle: one of the system's.
func WebhookConversion(url string, bundle []byte) *apiextensionsv1.CustomResourceConversion {
	return &apiextensionsv1.CustomResourceConversion{
		Strategy: apiextensionsv1.WebhookConverter,
		Webhook: &apiextensionsv1.WebhookConversion{
			ClientConfig:             &apiextensionsv1.WebhookClientConfig{URL: &url, CABundle: bundle},
			ConversionReviewVersions: []string{"v1"},
		},
	}
}

// ForMember returns what a person who installs the kind is to apply: New, but with the conversion that a hub has set already.
func (d *Definition) ForMember(there *apiextensionsv1.CustomResourceDefinition) *apiextensionsv1.CustomResourceDefinition {
	if there != nil && there.Spec.Conversion != nil && there.Spec.Conversion.Strategy == apiextensionsv1.WebhookConverter {
		return d.With(there.Spec.Conversion)
	}
	return d.New()
}

// Refusal says why a definition in a member must not be replaced by ours; "" when it may be. A stored version is never
// lowered: what is stored must stay readable, and what a newer Plimsoll wrote is its own.
func (d *Definition) Refusal(there *apiextensionsv1.CustomResourceDefinition) string {
	if text, ok := there.Annotations[d.RevisionAnnotation()]; ok {
		revision, err := strconv.Atoi(text)
		if err != nil || revision < 0 {
			return fmt.Sprintf("annotation %s: %.32q: must be a whole number; the hub cannot determine which version wrote this definition", d.RevisionAnnotation(), text)
		}
		if revision > d.revision {
			return fmt.Sprintf("a newer Plimsoll wrote revision %d of it, this one knows %d: update this one", revision, d.revision)
		}
	}
	for _, stored := range there.Status.StoredVersions {
		if !slices.ContainsFunc(d.made.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Name == stored }) {
			return fmt.Sprintf("objects are stored as %s, which this Plimsoll does not know: update it, or migrate them and take %s out of status.storedVersions", stored, stored)
		}
	}
	return ""
}

// Kept reports whether the hub may change a definition in a member.
func (d *Definition) Kept(there *metav1.ObjectMeta) bool {
	return there.Annotations[d.KeepAnnotation()] != "false"
}

// Differs says in what a definition in a member differs from ours with a conversion, as far as the hub caches it; "" when in nothing.
func (d *Definition) Differs(there *apiextensionsv1.CustomResourceDefinition, conversion *apiextensionsv1.CustomResourceConversion) string {
	key, revision := d.RevisionAnnotation(), strconv.Itoa(d.revision)
	if is := there.Annotations[key]; is != revision {
		return fmt.Sprintf("annotation %s is %.32q, not %q", key, is, revision)
	}
	if !sameJSON(there.Spec.Conversion, conversion) {
		return "its conversion does not lead to this hub"
	}
	for _, want := range d.made.Spec.Versions {
		if !slices.ContainsFunc(there.Spec.Versions, func(is apiextensionsv1.CustomResourceDefinitionVersion) bool {
			return is.Name == want.Name && is.Served == served(want, conversion) && is.Storage == want.Storage
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
