// Package crd is what a member is to know of the WebApp kind: the CustomResourceDefinition that controller-gen makes from
// the kind's packages.
//
// It writes nothing itself. `plimsoll webapps install` makes the definition, the hub keeps it current.
package crd

import (
	_ "embed" // the definition

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/plimsoll-dev/plimsoll/reconcile/module"
)

//go:embed apps.plimsoll.dev_webapps.yaml
var definition []byte

const (
	// Name of the definition.
	Name = "webapps.apps.plimsoll.dev"
	// Revision counts the changes of the definition; a test fails when it has to be raised. A Plimsoll leaves alone what a
	// newer one wrote.
	Revision = 1
	// RevisionAnnotation on a definition is the Revision of the Plimsoll that wrote it.
	RevisionAnnotation = "apps.plimsoll.dev/revision"
	// KeepAnnotation with the value "false" on a definition keeps the hub from changing it: its owner does, and the hub says
	// whether it is current.
	KeepAnnotation = "apps.plimsoll.dev/keep-current"
)

// Definition is what the hub keeps, and what is installed.
var Definition = module.MustDefinition(definition, Revision)

// New returns the definition as it is without a hub.
func New() *apiextensionsv1.CustomResourceDefinition { return Definition.New() }
