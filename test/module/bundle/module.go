package bundle

import (
	_ "embed"
	"errors"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"example.com/fleet-hub/mirror"

	"github.com/plimsoll-dev/plimsoll/clusters"
	"github.com/plimsoll-dev/plimsoll/hub"
	"github.com/plimsoll-dev/plimsoll/reconcile"
	"github.com/plimsoll-dev/plimsoll/reconcile/module"
)

// TeamLabel says whose a Bundle is; DefaultTeam has those of which nobody says it.
const (
	TeamLabel   = "example.com/team"
	DefaultTeam = "platform"
)

// revision counts the changes of the definition.
const revision = 1

//go:embed crd.yaml
var definition []byte

// Module is what a hub is given: the controller, the kind's Go types and definition, and what members ask about its objects.
func Module() hub.Module {
	return hub.Module{
		Name:        ControllerName,
		AddToScheme: AddToScheme,
		Register: func(host hub.Host) ([]*reconcile.Controller, error) {
			controller, err := Register(host.Runtime)
			return []*reconcile.Controller{controller}, err
		},
		Kinds: func(controller *reconcile.Controller) []clusters.Kind {
			kinds := controller.Kinds()
			kinds[0].Optional = true // a member without Bundles lacks nothing
			return kinds
		},
		Rights: []clusters.Access{
			{Group: Group, Resource: "bundles", Verbs: []string{"get", "list", "watch"}, For: "keeping Bundles", Beside: &Bundle{}},
			{Group: Group, Resource: "bundles", Subresource: "status", Verbs: []string{"patch"}, For: "keeping Bundles", Beside: &Bundle{}},
		},
		Resources: []module.Resource{{
			Title: "Bundles", Group: Group, Kind: Kind, Plural: "bundles", Versions: []string{Stored.Version, Older.Version},
			AddToScheme: addVersions, Definition: module.MustDefinition(definition, revision),
			Convert: Convert, Complete: Complete, Review: Review,
		}},
	}
}

// Register adds the controller to a runtime.
func Register(rt *reconcile.Runtime) (*reconcile.Controller, error) {
	return reconcile.For(rt, ControllerName, Reconciler{}).
		Domain("example.com").
		DependsOn(Needs).
		Owns(mirror.Kind()). // a kind has one cache in a member: all controllers that need it select it alike
		Register()
}

// Complete gives a Bundle to the default team, unless somebody said whose it is.
func Complete(object *metav1.ObjectMeta) bool {
	if object.Labels[TeamLabel] != "" {
		return false
	}
	if object.Labels == nil {
		object.Labels = map[string]string{}
	}
	object.Labels[TeamLabel] = DefaultTeam
	return true
}

// Review refuses namespaces into which a hub writes nothing.
func Review(asked module.Review) (is module.Judgement, err error) {
	var bundle Bundle
	if err := json.Unmarshal(asked.Object, &bundle); err != nil {
		return is, errors.New("not a Bundle")
	}
	for i, namespace := range bundle.Spec.To {
		if strings.HasPrefix(namespace, "kube-") {
			is.Refusals = append(is.Refusals, field.Forbidden(field.NewPath("spec", "to").Index(i), "is a namespace of the system"))
		}
	}
	return is, nil
}

// Convert rewrites a Bundle in the other version: a list is words with commas between them in the older one.
func Convert(object []byte, desiredAPIVersion string) ([]byte, error) {
	var bundle map[string]any
	if err := json.Unmarshal(object, &bundle); err != nil {
		return nil, errors.New("not a Bundle")
	}
	desired, err := schema.ParseGroupVersion(desiredAPIVersion)
	if err != nil || !slices.Contains([]schema.GroupVersion{Stored, Older}, desired) {
		return nil, errors.New("desiredAPIVersion: is not a version of Bundle")
	}
	spec, _ := bundle["spec"].(map[string]any)
	for _, name := range []string{"sources", "to"} {
		switch value := spec[name].(type) {
		case string:
			if desired == Stored {
				spec[name] = strings.Split(value, ",")
			}
		case []any:
			if desired == Older {
				words := make([]string, len(value))
				for i := range value {
					words[i] = fmt.Sprint(value[i])
				}
				spec[name] = strings.Join(words, ",")
			}
		}
	}
	bundle["apiVersion"] = desiredAPIVersion
	return json.Marshal(bundle)
}
