package reconciletest_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/plimsoll-dev/plimsoll/reconcile/reconciletest"
)

const deploymentYAML = `
-- web.yaml --
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {tier: $TIER}}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers: [{name: app, image: 'app:1'}, {name: side, image: 'side:2'}]
-- five.yaml --
spec: {replicas: 5}
-- ready.yaml --
status: {readyReplicas: 5}
`

// played is a scenario over a member in memory, to which somebody else writes what writes says.
func played(writes *[]string) *reconciletest.Scenario {
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{appsv1.SchemeGroupVersion})
	mapper.Add(appsv1.SchemeGroupVersion.WithKind("Deployment"), meta.RESTScopeNamespace)
	return &reconciletest.Scenario{
		Patience: time.Second,
		Env:      map[string]string{"NS": "default", "TIER": "front"},
		Members: map[string]reconciletest.Target{"a": {
			Client: fake.NewClientBuilder().WithScheme(scheme.Scheme).WithRESTMapper(mapper).WithStatusSubresource(&appsv1.Deployment{}).Build(),
			Writes: func() (func(context.Context) ([]string, error), error) {
				before := len(*writes)
				return func(context.Context) ([]string, error) { return (*writes)[before:], nil }, nil
			},
		}},
		Commands: map[string]reconciletest.Command{"say": func(_ context.Context, args []string) error {
			*writes = append(*writes, args...)
			return nil
		}},
	}
}

func TestAScriptAppliesWaitsAndExpects(t *testing.T) {
	var writes []string
	if err := played(&writes).Run(t.Context(), []byte(`
# the story of a Deployment
expect a Deployment.apps/web gone
apply a web.yaml
expect a Deployment.apps/web exists spec.replicas=3 metadata.labels.tier=front  # $TIER
expect a Deployment.apps/default/web spec.template.spec.containers[side].image~side spec.template.spec.containers[0].name=app status.conditions[Ready].reason=
patch a Deployment.apps/web five.yaml
wait a Deployment.apps/web spec.replicas=5
status a Deployment.apps/web ready.yaml
expect a Deployment.apps/web status.readyReplicas=5
say 'two words' one
remember a
expect-no-writes a
delete a Deployment.apps/web
wait a Deployment.apps/web gone
`+deploymentYAML)); err != nil {
		t.Fatal(err)
	}
	if strings.Join(writes, "|") != "two words|one" {
		t.Errorf("words: %q", writes)
	}
}

func TestAScriptThatFailsNamesItsLineAndWhatItFound(t *testing.T) {
	for script, want := range map[string]string{
		"\nexpect a Deployment.apps/web exists":                        "line 2: expect a Deployment.apps/web exists: it is not there",
		"apply a web.yaml\nwait a Deployment.apps/web spec.replicas=4": `line 2: wait a Deployment.apps/web spec.replicas=4: spec.replicas is "3", not "4"`,
		"apply a web.yaml\nexpect a Deployment.apps/web gone":          "it is there",
		"apply a web.yaml\nexpect a Deployment.apps/web status~x":      `status is "map[]", not "x"`,
		"apply a nothing.yaml":                                         `there is no file "nothing.yaml"`,
		"apply b web.yaml":                                             `there is no member "b"`,
		"apply a":                                                      "2 words are wanted",
		"dance":                                                        "there is no such command",
		"expect a Deployment.apps exists":                              "want Kind/name",
		"expect a Nonsense/web exists":                                 "Nonsense",
		"apply a web.yaml\nexpect a Deployment.apps/web maybe":         "want exists, gone, path=value or path~text",
		"expect-no-writes a":                                           "say remember first",
		"remember a\nsay create\nexpect-no-writes a":                   "there were 1: create",
		"say 'open": "a quote is not closed",
	} {
		var writes []string
		err := played(&writes).Run(t.Context(), []byte(script+"\n"+deploymentYAML))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s\n%v, want %q", script, err, want)
		}
	}
	s := played(new([]string))
	s.Commands = map[string]reconciletest.Command{"wait": nil, "expect": nil, "apply": nil, "delete": nil, "status": nil, "patch": nil}
	if err := s.Run(t.Context(), nil); err == nil || !strings.Contains(err.Error(), `command "apply": there is one`) {
		t.Errorf("a command of a taken name: %v", err)
	}
	if err := s.RunFile(t.Context(), "nowhere.txtar"); err == nil {
		t.Error("a file that is not there was run")
	}
}

func TestUntilTellsTheLastError(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	tries := 0
	err := reconciletest.Until(ctx, func(context.Context) error {
		if tries++; tries == 2 {
			cancel()
		}
		return errors.New(strings.Repeat("x", tries))
	})
	if err == nil || err.Error() != "xx" {
		t.Errorf("%v after %d tries", err, tries)
	}
}
