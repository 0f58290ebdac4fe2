package webhook

import (
	"fmt"
	"slices"
	"sync"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plimsoll-dev/plimsoll/clusters"
	"github.com/plimsoll-dev/plimsoll/reconcile"
	"github.com/plimsoll-dev/plimsoll/reconcile/module"
)

// Names of the controllers of a [KindInstaller].
const (
	DefinitionController = "kind-definitions"
	ValidationController = "kind-validations"
)

// Reasons of the state of a kind in a member, beside ReasonMissing, ReasonCurrent and ReasonFailed.
const (
	// ReasonRefused: the definition there must not be replaced by ours.
	ReasonRefused = "Refused"
	// ReasonOutdated: its owner keeps it, and it is not what this hub needs.
	ReasonOutdated = "Outdated"
)

// definitionManager is the field manager of what the hub writes into definitions.
const definitionManager = "plimsoll-hub"

// KindInstaller keeps what a member is to know of the modules' kinds current: the definitions, with this hub for their
// converter, and the configuration by which the member asks what may be stored. It makes neither: a person does. Members that
// are registered for named namespaces are left alone, for a definition is the whole cluster's.
type KindInstaller struct {
	options InstallerOptions

	mu          sync.Mutex
	definitions map[memberKind]Installation
	applied     map[memberKind]appliedDefinition
	validations map[string]Installation // by member
}

// memberKind is a kind in a member, by the name of its definition.
type memberKind struct{ member, definition string }

// appliedDefinition is what a member's definition was when it was last as it should be.
type appliedDefinition struct {
	uid        types.UID
	generation int64
	content    string
}

// NewKindInstaller makes one from the options of an [Installer].
func NewKindInstaller(options InstallerOptions) (*KindInstaller, error) {
	checked, err := NewInstaller(options)
	if err != nil {
		return nil, err
	}
	return &KindInstaller{
		options: checked.options, definitions: map[memberKind]Installation{}, validations: map[string]Installation{},
		applied: map[memberKind]appliedDefinition{},
	}, nil
}

// defined are the kinds whose definition the hub keeps.
func (k *KindInstaller) defined() (kinds []*module.Resource) {
	for i := range k.options.Kinds {
		if kind := &k.options.Kinds[i]; kind.Definition != nil {
			kinds = append(kinds, kind)
		}
	}
	return kinds
}

// reviewed are the kinds about which members ask what may be stored.
func (k *KindInstaller) reviewed() (kinds []*module.Resource) {
	for i := range k.options.Kinds {
		if kind := &k.options.Kinds[i]; kind.Review != nil {
			kinds = append(kinds, kind)
		}
	}
	return kinds
}

// Register adds the controllers to a runtime that have something to keep.
func (k *KindInstaller) Register(rt *reconcile.Runtime) (controllers []*reconcile.Controller, err error) {
	if defined := k.defined(); len(defined) > 0 {
		kind := clusters.Kind{Object: &apiextensionsv1.CustomResourceDefinition{}, Keep: keepDefinition}
		for _, one := range defined {
			kind.Names = append(kind.Names, one.Definition.Name())
		}
		definitions, err := reconcile.For(rt, DefinitionController, definitionKeeper{k}).Kind(kind).Register()
		if err != nil {
			return nil, err
		}
		controllers = append(controllers, definitions)
	}
	if len(k.reviewed()) > 0 {
		validations, err := reconcile.For(rt, ValidationController, validationKeeper{k}).Kind(clusters.Kind{
			Object: &admissionregistrationv1.ValidatingWebhookConfiguration{}, Fields: fields.OneTermEqualSelector("metadata.name", k.options.Name),
		}).Register()
		if err != nil {
			return nil, err
		}
		controllers = append(controllers, validations)
	}
	return controllers, nil
}

// Kinds are those of a controller of ours, as members are to have them cached: a member without the modules' kinds lacks nothing.
func (k *KindInstaller) Kinds(controller *reconcile.Controller) []clusters.Kind {
	kinds := controller.Kinds()
	for i := range kinds {
		kinds[i].Optional, kinds[i].Companion = true, true
	}
	return kinds
}

// State tells how a kind is in a member, as last seen: what is wrong with its definition, else with the configuration beside it.
// Only kinds with a definition are known.
func (k *KindInstaller) State(kind *module.Resource, member string) Installation {
	how := "a person"
	if kind.InstallWith != "" {
		how = kind.InstallWith
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	definition, known := k.definitions[memberKind{member, kind.Definition.Name()}]
	if !known {
		return Installation{ReasonMissing, fmt.Sprintf(
			"the hub sees no definition of %s in the member: %s makes it, and lets the hub keep it current", kind.Title, how)}
	}
	if definition.Reason != ReasonCurrent || kind.Review == nil {
		return definition
	}
	switch validation, known := k.validations[member]; {
	case !known:
		return Installation{ReasonMissing, fmt.Sprintf(
			"the hub sees no ValidatingWebhookConfiguration %s in the member: %s makes it; until then %s are stored without the hub's policy",
			k.options.Name, how, kind.Title)}
	case validation.Reason != ReasonCurrent:
		return validation
	}
	return definition
}

func (k *KindInstaller) setDefinition(member string, kind *module.Resource, is Installation) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.definitions[memberKind{member, kind.Definition.Name()}] = is
}

func (k *KindInstaller) setValidation(member string, is Installation) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.validations[member] = is
}

// Forget drops what is known of a member.
func (k *KindInstaller) Forget(member string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, kind := range k.defined() {
		delete(k.definitions, memberKind{member, kind.Definition.Name()})
		delete(k.applied, memberKind{member, kind.Definition.Name()})
	}
	delete(k.validations, member)
}

// tenant tells whether a member is only some namespaces of a cluster.
func (k *KindInstaller) tenant(member string) bool { return k.options.Namespaces(member) != nil }

// kindOf is the kind with a definition of that name; nil: it is none of ours.
func (k *KindInstaller) kindOf(definition string) *module.Resource {
	defined := k.defined()
	if i := slices.IndexFunc(defined, func(kind *module.Resource) bool { return kind.Definition.Name() == definition }); i >= 0 {
		return defined[i]
	}
	return nil
}
