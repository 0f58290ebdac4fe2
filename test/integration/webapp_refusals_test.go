package integration

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/plimsoll-dev/plimsoll/reconcile/webapp/crd"
)

// webAppSamples are WebApps, by version, with every field that a rule is about.
var webAppSamples = map[string]string{
	"v1": `
metadata: {name: shop}
spec:
  replicas: 2
  containers:
  - name: web
    image: shop:1
    command: [run]
    args: [fast]
    ports: [{name: http, containerPort: 8080, servicePort: 80, nodePort: 30080}]
    env: [{name: A, value: b}]
    resources: {requests: {cpu: 100m}, limits: {cpu: 200m}}
    readiness: {path: /ready, port: http}
  envFrom: [{secret: db, prefix: DB_}, {configMap: more}]
  service: {type: NodePort}
  autoscaling: {minReplicas: 1, maxReplicas: 3, targetCPUUtilization: 80}
  podDisruptionBudget: {maxUnavailable: 1}
  spot: {percentage: 50, minOnDemand: 1, disruptionSchedule: "0 2 * * *", disruptionDuration: 1h}
`,
	"v1beta1": `
metadata: {name: shop}
spec:
  replicas: 2
  containers: [{name: web, image: "shop:1", port: 8080, env: {cpu: many}}]
  secrets: [db]
  configMaps: [more]
  minReplicas: 1
  maxReplicas: 3
  targetCPUPercent: 80
  minAvailable: 1
  spotPercentage: 50
  minOnDemand: 1
`,
	"v1alpha1": `
metadata: {name: shop}
spec: {image: "shop:1", port: 8080, replicas: 2, spotPercentage: 50}
`,
}

// webAppRules are the rules that the schema's words cannot express: what is done to the sample of a version, and what is said then.
// A test sees to it that none is left out.
var webAppRules = []struct {
	version string
	change  func(root map[string]any)
	says    string
}{
	{"", set("a"+strings.Repeat("b", 63), "metadata", "name"), "metadata.name must be at most 63 characters: it is the name of a Service"},
	{"", set("1shop", "metadata", "name"), "metadata.name must be a DNS label that begins with a letter: it is the name of a Service"},
	{"v1", func(root map[string]any) {
		containers := []any{at(root, "spec", "containers", 0), map[string]any{"name": "side", "image": "side:1",
			"ports":     []any{map[string]any{"name": "http", "containerPort": int64(9)}},
			"resources": map[string]any{"requests": map[string]any{"cpu": "1"}}}}
		set(containers, "spec", "containers")(root)
	}, "spec.containers: Invalid value: the names of ports must differ over all containers: they are the ports of one Service"},
	{"v1", set("ClusterIP", "spec", "service", "type"), "spec.containers: Invalid value: nodePort needs service.type NodePort or LoadBalancer"},
	{"v1", set(map[string]any{}, "spec", "containers", 0, "resources"),
		"spec.autoscaling: Invalid value: autoscaling needs resources.requests.cpu of every container: utilization is a share of it"},
	{"v1", set(int64(4), "spec", "autoscaling", "minReplicas"), "spec.autoscaling.minReplicas: Invalid value: minReplicas must not be more than maxReplicas"},
	{"v1", set("admin", "spec", "containers", 0, "readiness", "port"),
		"spec.containers[0].readiness.port: Invalid value: readiness.port must be the name of a port of the container"},
	{"v1", set("more", "spec", "envFrom", 0, "configMap"), "spec.envFrom[0]: Invalid value: exactly one of secret and configMap must be set"},
	{"v1", set(map[string]any{"prefix": "A_"}, "spec", "envFrom", 0), "spec.envFrom[0]: Invalid value: exactly one of secret and configMap must be set"},
	{"v1", set(int64(1), "spec", "podDisruptionBudget", "minAvailable"),
		"spec.podDisruptionBudget: Invalid value: exactly one of minAvailable and maxUnavailable must be set"},
	{"v1", set(map[string]any{}, "spec", "podDisruptionBudget"), "spec.podDisruptionBudget: Invalid value: exactly one of minAvailable and maxUnavailable must be set"},
	{"v1", set("101%", "spec", "podDisruptionBudget", "maxUnavailable"),
		`spec.podDisruptionBudget.maxUnavailable: Invalid value: "101%": must be a number from 0, or 0% to 100%`},
	{"v1", set(map[string]any{"minAvailable": int64(-1)}, "spec", "podDisruptionBudget"),
		"spec.podDisruptionBudget.minAvailable: Invalid value: -1: must be a number from 0, or 0% to 100%"},
	{"v1", set(true, "spec", "service", "headless"), "spec.service.headless: Invalid value: headless needs type ClusterIP"},
	{"v1", unset("spec", "spot", "disruptionDuration"), "spec.spot: Invalid value: disruptionSchedule and disruptionDuration must be set both, or neither"},
	{"v1beta1", unset("spec", "maxReplicas"), "spec: Invalid value: minReplicas and targetCPUPercent need maxReplicas"},
	{"v1beta1", set(int64(4), "spec", "minReplicas"), "spec.minReplicas: Invalid value: minReplicas must not be more than maxReplicas"},
	{"v1beta1", set("half", "spec", "minAvailable"), `spec.minAvailable: Invalid value: "half": must be a number from 0, or 0% to 100%`},
}

// webAppRulesSpec breaks every rule of the definition, in every version.
func webAppRulesSpec(s *webApps) {
	for _, version := range crd.New().Spec.Versions {
		s.Eventually(func() error { return s.dry(version.Name, s.sample(version.Name)) }).Should(Succeed(), "the sample of %s", version.Name)
		told := []string{"service.headless cannot be changed: Kubernetes cannot change the cluster IP of a Service"} // by the spec of changes
		for _, rule := range webAppRules {
			if rule.version == "" || rule.version == version.Name {
				root := s.sample(version.Name)
				rule.change(root)
				s.Expect(s.dry(version.Name, root)).To(MatchError(ContainSubstring(rule.says)), version.Name)
				told = append(told, rule.says)
			}
		}
		walk(version.Schema.OpenAPIV3Schema, nil, func(schema *apiextensionsv1.JSONSchemaProps, path []any) {
			for _, rule := range schema.XValidations {
				s.Expect(told).To(ContainElement(HaveSuffix(rule.Message)), "nothing breaks the rule of %s at %s", version.Name, text(path))
			}
		})
	}
}

// webAppBoundsSpec goes beyond every bound of every field, in every version.
func webAppBoundsSpec(s *webApps) {
	for _, version := range crd.New().Spec.Versions {
		s.Eventually(func() error { return s.dry(version.Name, s.sample(version.Name)) }).Should(Succeed(), "the sample of %s", version.Name)
		spec := version.Schema.OpenAPIV3Schema.Properties["spec"]
		walk(&spec, []any{"spec"}, func(schema *apiextensionsv1.JSONSchemaProps, path []any) {
			for _, bound := range boundsOf(schema, text(path), at(s.sample(version.Name), path...)) {
				root := s.sample(version.Name)
				set(bound.value, path...)(root)
				s.Expect(s.dry(version.Name, root)).To(MatchError(ContainSubstring(bound.says)), version.Name)
			}
			for _, field := range schema.Required {
				root := s.sample(version.Name)
				unset(append(slices.Clone(path), field)...)(root)
				s.Expect(s.dry(version.Name, root)).To(MatchError(ContainSubstring(text(path)+"."+field+": Required value")), version.Name)
			}
		})
	}
}

// dry asks the member whether it would make this WebApp.
func (s *webApps) dry(version string, root map[string]any) error {
	app := &unstructured.Unstructured{Object: root}
	app.SetAPIVersion("apps.plimsoll.dev/" + version)
	app.SetKind("WebApp")
	app.SetNamespace(s.namespace)
	return s.client.Create(s.ctx, app, client.DryRunAll)
}

func (s *webApps) sample(version string) map[string]any {
	s.t.Helper()
	text, err := yaml.YAMLToJSON([]byte(webAppSamples[version]))
	s.Expect(err).NotTo(HaveOccurred())
	root := map[string]any{}
	s.Expect(json.Unmarshal(text, &root)).To(Succeed())
	return root
}

// A bound is broken by a value just beyond it, of which something is said.
type bound struct {
	value any
	says  string
}

// boundsOf are the bounds of a field whose value in the sample is known.
func boundsOf(schema *apiextensionsv1.JSONSchemaProps, name string, is any) (all []bound) {
	number := func(limit *float64, beyond int64, words string) {
		if limit != nil {
			value := int64(*limit) + beyond
			all = append(all, bound{value, fmt.Sprintf("%s: Invalid value: %d: %s in body should be %s than or equal to %d", name, value, name, words, int64(*limit))})
		}
	}
	number(schema.Minimum, -1, "greater")
	number(schema.Maximum, 1, "less")
	if n := schema.MinLength; n != nil {
		value := strings.Repeat("1", int(*n)-1)
		all = append(all, bound{value, fmt.Sprintf("%s: Invalid value: %q: %s in body should be at least %d chars long", name, value, name, *n)})
	}
	if n := schema.MaxLength; n != nil {
		all = append(all, bound{strings.Repeat("a", int(*n)+1), fmt.Sprintf("%s: Too long: may not be more than %d bytes", name, *n)})
	}
	if schema.Pattern != "" {
		const value = "not this one !"
		all = append(all, bound{value, fmt.Sprintf("%s: Invalid value: %q: %s in body should match '%s'", name, value, name, schema.Pattern)})
	}
	if len(schema.Enum) > 0 {
		all = append(all, bound{"Nonsense", name + `: Unsupported value: "Nonsense": supported values: `})
	}
	if n := schema.MinItems; n != nil {
		all = append(all, bound{[]any{}, fmt.Sprintf("%s: Invalid value: 0: %s in body should have at least %d items", name, name, *n)})
	}
	if n := schema.MaxItems; n != nil {
		all = append(all, bound{slices.Repeat(is.([]any)[:1], int(*n)+1), fmt.Sprintf("%s: Too many: %d: must have at most %d items", name, *n+1, *n)})
	}
	return all
}

// walk calls visit for a schema and all below it. Of a list it goes into the first element, of a map into its first key.
func walk(schema *apiextensionsv1.JSONSchemaProps, path []any, visit func(*apiextensionsv1.JSONSchemaProps, []any)) {
	visit(schema, path)
	for _, name := range slices.Sorted(maps.Keys(schema.Properties)) {
		inner := schema.Properties[name]
		walk(&inner, append(slices.Clone(path), name), visit)
	}
	if schema.Items != nil {
		walk(schema.Items.Schema, append(slices.Clone(path), 0), visit)
	}
	if schema.AdditionalProperties != nil && schema.AdditionalProperties.Schema != nil {
		walk(schema.AdditionalProperties.Schema, append(slices.Clone(path), "cpu"), visit)
	}
}

// text is a path as the API server writes it.
func text(path []any) string {
	var b strings.Builder
	for _, step := range path {
		switch step := step.(type) {
		case int:
			fmt.Fprintf(&b, "[%d]", step)
		case string:
			if b.Len() > 0 {
				b.WriteByte('.')
			}
			b.WriteString(step)
		}
	}
	return b.String()
}

// at is what is at a path, which must be there.
func at(root any, path ...any) any {
	for _, step := range path {
		switch step := step.(type) {
		case int:
			root = root.([]any)[step]
		case string:
			root = root.(map[string]any)[step]
		}
	}
	return root
}

// set puts a value at a path.
func set(value any, path ...any) func(root map[string]any) {
	return func(root map[string]any) {
		last := len(path) - 1
		switch step := path[last].(type) {
		case int:
			at(root, path[:last]...).([]any)[step] = value
		case string:
			at(root, path[:last]...).(map[string]any)[step] = value
		}
	}
}

// unset takes a field away.
func unset(path ...any) func(root map[string]any) {
	return func(root map[string]any) {
		last := len(path) - 1
		delete(at(root, path[:last]...).(map[string]any), path[last].(string))
	}
}
