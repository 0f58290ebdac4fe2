// Package crd is what a hub cluster is to know of the FleetPlacement kind: the CustomResourceDefinition that controller-gen
// makes from the kind's package. It writes nothing itself.
package crd

import (
	_ "embed" // the definition

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/plimsoll-dev/plimsoll/reconcile/module"
)

//go:embed fleet.plimsoll.dev_fleetplacements.yaml
var definition []byte

const (
	// Name of the definition.
	Name = "fleetplacements.fleet.plimsoll.dev"
	// Revision counts the changes of the definition.
	Revision = 2
)

// New returns the definition as it is installed.
func New() *apiextensionsv1.CustomResourceDefinition {
	return module.MustDefinition(definition, Revision).New()
}
