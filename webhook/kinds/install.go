package kinds

import (
	"crypto/sha256"
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
	"github.com/plimsoll-dev/plimsoll/webhook"
)

// Names of the controllers of an [Installer].
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

// Installer keeps what a member is to know of the modules' kinds current: the definitions, with this hub for their
// converter, and the configuration by which the member asks what may be stored. It makes neither: a person does. Members that
// are registered for named namespaces are left alone, for a definition is the whole cluster's.
type Installer struct {
	options webhook.InstallerOptions
	kinds   []module.Resource

	mu          sync.Mutex
	definitions map[memberKind]webhook.Installation
	applied     map[memberKind]appliedDefinition
	validations map[string]webhook.Installation // by member
}

// memberKind is a kind in a member, by the name of its definition.
type memberKind struct{ member, definition string }

// appliedDefinition is what a member's definition was when it was last as it should be.
type appliedDefinition struct {
	uid        types.UID
	generation int64
	conversion [sha256.Size]byte // its digest: there is one of these for each member
}

// NewInstaller keeps kinds in members, from the options of what keeps the webhook for pods there.
func NewInstaller(options webhook.InstallerOptions, kinds []module.Resource) (*Installer, error) {
	options, err := options.Checked()
	if err != nil {
		return nil, err
	}
	return &Installer{
		options: options, kinds: kinds, definitions: map[memberKind]webhook.Installation{}, validations: map[string]webhook.Installation{},
		applied: map[memberKind]appliedDefinition{},
	}, nil
}

// defined are the kinds whose definition the hub keeps.
func (k *Installer) defined() (kinds []*module.Resource) {
	for i := range k.kinds {
		if kind := &k.kinds[i]; kind.Definition != nil {
			kinds = append(kinds, kind)
		}
	}
	return kinds
}

// reviewed are the kinds about which members ask what may be stored.
func (k *Installer) reviewed() (kinds []*module.Resource) {
	for i := range k.kinds {
		if kind := &k.kinds[i]; kind.Review != nil {
			kinds = append(kinds, kind)
		}
	}
	return kinds
}

// Register adds the controllers to a runtime that have something to keep.
func (k *Installer) Register(rt *reconcile.Runtime) (controllers []*reconcile.Controller, err error) {
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
func (k *Installer) Kinds(controller *reconcile.Controller) []clusters.Kind {
	kinds := controller.Kinds()
	for i := range kinds {
		kinds[i].Optional, kinds[i].Companion = true, true
	}
	return kinds
}

// State reports how a kind is in a member, as last seen: what is wrong with its definition, else with the configuration beside it.
// Only kinds with a definition are known.
func (k *Installer) State(kind *module.Resource, member string) webhook.Installation {
	how := "a person"
	if kind.InstallWith != "" {
		how = kind.InstallWith
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	definition, known := k.definitions[memberKind{member, kind.Definition.Name()}]
	if !known {
		return webhook.Installation{Reason: webhook.ReasonMissing, Message: fmt.Sprintf(
			"the member has no definition of %s, or the hub may not read it: %s creates it, and lets the hub update it", kind.Title, how)}
	}
	if definition.Reason != webhook.ReasonCurrent || kind.Review == nil {
		return definition
	}
	switch validation, known := k.validations[member]; {
	case !known:
		return webhook.Installation{Reason: webhook.ReasonMissing, Message: fmt.Sprintf(
			"the member has no ValidatingWebhookConfiguration %s, or the hub may not read it: %s creates it; until then %s are stored without the hub's policy",
			k.options.Name, how, kind.Title)}
	case validation.Reason != webhook.ReasonCurrent:
		return validation
	}
	return definition
}

func (k *Installer) setDefinition(member string, kind *module.Resource, is webhook.Installation) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.definitions[memberKind{member, kind.Definition.Name()}] = is
}

func (k *Installer) setValidation(member string, is webhook.Installation) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.validations[member] = is
}

// Forget drops what is known about a member.
func (k *Installer) Forget(member string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, kind := range k.defined() {
		delete(k.definitions, memberKind{member, kind.Definition.Name()})
		delete(k.applied, memberKind{member, kind.Definition.Name()})
	}
	delete(k.validations, member)
}

// tenant reports whether a member is only some namespaces of a cluster.
func (k *Installer) tenant(member string) bool { return k.options.Namespaces(member) != nil }

// kindOf is the kind with a definition of that name; nil: it is none of ours.
func (k *Installer) kindOf(definition string) *module.Resource {
	defined := k.defined()
	if i := slices.IndexFunc(defined, func(kind *module.Resource) bool { return kind.Definition.Name() == definition }); i >= 0 {
		return defined[i]
	}
	return nil
}
