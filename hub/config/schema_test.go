package config

import (
	"encoding/json"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
)

const (
	chartSchema = "../../deploy/chart/plimsoll/values.schema.json"

	// What stands between these in the schema of the chart's values is made from Config.
	schemaBefore = "\"definitions\": {\n    \"config\": "
	schemaAfter  = ",\n    \"texts\": "
)

// setByTheChart are the keys that the chart does not take: its Deployment, Services and probes count on them.
var setByTheChart = []string{
	"webhook.port", "webhook.bindAddress", "webhook.certDir", "api.grpcAddress", "api.restAddress", "api.certDir", "api.plaintext",
	"api.unauthenticated", "peer.address", "peer.advertise", "metrics.address", "metrics.certDir", "metrics.unauthenticated", "probes.address", "hub.namespace", "hub.kubeconfig",
	"hub.registrationNamespace", "hub.registrationsInOwnNamespace", "webhook.clientCA",
	"leaderElection.enabled",
}

func TestTheDocumentationInTheChartsSchemaHasEveryKey(t *testing.T) {
	text, err := os.ReadFile(chartSchema)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(text), schemaBefore)
	committed, after, foundToo := strings.Cut(rest, schemaAfter)
	if !found || !foundToo {
		t.Fatalf("%s has no place for the configuration", chartSchema)
	}
	schema := schemaOf(reflect.TypeFor[Config](), "", fieldComments(t))
	made, err := json.MarshalIndent(schema, "    ", "  ")
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(chartSchema, []byte(before+schemaBefore+string(made)+schemaAfter+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if committed != string(made) {
		t.Errorf("%s does not know the keys of config.go; run this test with -update", chartSchema)
	}
}

func TestEveryKeyThatTheChartSetsIsOne(t *testing.T) {
	for _, key := range setByTheChart {
		if !slices.ContainsFunc(Leaves(), func(l Leaf) bool { return l.Path == key }) {
			t.Errorf("%s is no key of the configuration", key)
		}
	}
}

// schemaOf is the JSON schema of a type of the configuration at path.
func schemaOf(typ reflect.Type, path string, comments map[string]string) map[string]any {
	_, foreign := kubernetesTypes[typ]
	switch {
	case foreign || typ == sectionsType:
		return map[string]any{"type": "object"}
	case typ == durationType:
		return map[string]any{"type": "string", "pattern": `^(0|([0-9]+(\.[0-9]+)?(ns|us|ms|s|m|h))+)$`}
	case reflect.PointerTo(typ).Implements(textType):
		return map[string]any{"type": []string{"string", "number"}}
	}
	switch typ.Kind() {
	case reflect.Struct:
		return schemaOfStruct(typ, path, comments)
	case reflect.Slice:
		return map[string]any{"type": "array", "items": schemaOf(typ.Elem(), path+"[]", comments)}
	case reflect.Pointer:
		return schemaOf(typ.Elem(), path, comments)
	case reflect.Bool:
		return map[string]any{"type": "boolean"}
	case reflect.String:
		return map[string]any{"type": "string"}
	case reflect.Float32, reflect.Float64:
		return map[string]any{"type": "number"}
	}
	return map[string]any{"type": "integer"}
}

func schemaOfStruct(typ reflect.Type, path string, comments map[string]string) map[string]any {
	properties := map[string]any{}
	for i := range typ.NumField() {
		field := typ.Field(i)
		at := join(path, field.Tag.Get("yaml"))
		if slices.Contains(setByTheChart, at) {
			continue
		}
		schema := schemaOf(field.Type, at, comments)
		if comment := comments[typ.Name()+"."+field.Name]; comment != "" {
			schema["description"] = comment
		}
		properties[field.Tag.Get("yaml")] = schema
	}
	for name, schema := range properties {
		if nested, ok := schema.(map[string]any)["properties"].(map[string]any); ok && len(nested) == 0 {
			delete(properties, name) // a section of which the chart sets every key
		}
	}
	return map[string]any{"type": "object", "additionalProperties": false, "properties": properties}
}
