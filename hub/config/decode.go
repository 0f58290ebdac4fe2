package config

import (
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kyaml "sigs.k8s.io/yaml"
)

var (
	durationType    = reflect.TypeFor[time.Duration]()
	textType        = reflect.TypeFor[encoding.TextUnmarshaler]()
	kubernetesTypes = map[reflect.Type]string{
		reflect.TypeFor[metav1.LabelSelector](): "a Kubernetes label selector",
		reflect.TypeFor[corev1.Toleration]():    "a Kubernetes toleration",
	}
)

// problem is one thing that is wrong with a configuration: the path of the key, such as spot.maxMoves, the value as it was given,
// and the rule that it breaks.
func problem(path string, value any, rule string) *field.Error {
	return &field.Error{Type: field.ErrorTypeInvalid, Field: path, BadValue: value, Detail: rule}
}

// decoder puts YAML into a [Config] and notes every problem, so that all of them are shown at once. yaml.v3 could decode
// strictly by itself, but its errors name lines and Go types, not the path of the key.
type decoder struct{ problems field.ErrorList }

func (d *decoder) refuse(path string, node *yaml.Node, format string, args ...any) {
	d.problems = append(d.problems, problem(path, show(node), fmt.Sprintf(format, args...)))
}

// decode puts node into the value at path.
func (d *decoder) decode(path string, node *yaml.Node, into reflect.Value) {
	for node.Kind == yaml.AliasNode {
		node = node.Alias
	}
	if node.Tag == "!!null" {
		d.decodeNull(path, node, into)
		return
	}
	if sections, ok := into.Addr().Interface().(*ModuleSections); ok {
		d.decodeSections(path, node, sections)
		return
	}
	if what, ok := kubernetesTypes[into.Type()]; ok {
		d.decodeKubernetes(path, node, into, what)
		return
	}
	if reflect.PointerTo(into.Type()).Implements(textType) || into.Type() == durationType {
		d.decodeText(path, node, into)
		return
	}
	switch into.Kind() {
	case reflect.Struct:
		d.decodeStruct(path, node, into)
	case reflect.Slice:
		d.decodeSlice(path, node, into)
	case reflect.Pointer:
		value := reflect.New(into.Type().Elem())
		d.decode(path, node, value.Elem())
		into.Set(value)
	default:
		d.decodeScalar(path, node, into)
	}
}

// decodeNull accepts an empty section, which is what a commented-out one leaves behind, and refuses an empty value.
func (d *decoder) decodeNull(path string, node *yaml.Node, into reflect.Value) {
	if into.Kind() != reflect.Struct {
		d.refuse(path, node, "must have a value; leave the key out for its default")
	}
}

func (d *decoder) decodeStruct(path string, node *yaml.Node, into reflect.Value) {
	if node.Kind != yaml.MappingNode {
		d.refuse(path, node, "must be a section with keys")
		return
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, value := node.Content[i].Value, node.Content[i+1]
		known := fieldOf(into, key)
		switch {
		case !known.IsValid() && d.refusePredecessor(join(path, key), value): // each of its keys was refused
		case !known.IsValid():
			d.refuse(join(path, key), value, "unknown key; known here: %s", strings.Join(keysOf(into.Type()), ", "))
		case seen[key]:
			d.refuse(join(path, key), value, "is given twice")
		default:
			d.decode(join(path, key), value, known)
		}
		seen[key] = true
	}
}

func (d *decoder) decodeSlice(path string, node *yaml.Node, into reflect.Value) {
	if node.Kind != yaml.SequenceNode {
		d.refuse(path, node, "must be a list")
		return
	}
	list := reflect.MakeSlice(into.Type(), len(node.Content), len(node.Content))
	for i, item := range node.Content {
		d.decode(fmt.Sprintf("%s[%d]", path, i), item, list.Index(i))
	}
	into.Set(list)
}

func (d *decoder) decodeText(path string, node *yaml.Node, into reflect.Value) {
	err := errors.New("not a text")
	if node.Kind == yaml.ScalarNode && node.Tag != "!!bool" {
		if duration, ok := into.Addr().Interface().(*time.Duration); ok {
			*duration, err = time.ParseDuration(node.Value)
		} else {
			err = into.Addr().Interface().(encoding.TextUnmarshaler).UnmarshalText([]byte(node.Value))
		}
	}
	if err != nil {
		d.refuse(path, node, "must be %s", typeName(into.Type()))
	}
}

func (d *decoder) decodeScalar(path string, node *yaml.Node, into reflect.Value) {
	wanted := map[reflect.Kind]string{reflect.String: "!!str", reflect.Bool: "!!bool", reflect.Int: "!!int", reflect.Float64: "!!float"}[into.Kind()]
	fits := node.Tag == wanted || into.Kind() == reflect.Float64 && node.Tag == "!!int"
	if node.Kind != yaml.ScalarNode || !fits || node.Decode(into.Addr().Interface()) != nil {
		d.refuse(path, node, "must be %s", typeName(into.Type()))
	}
}

// decodeKubernetes decodes a type of the Kubernetes API by its own JSON names, as strictly as the rest.
func (d *decoder) decodeKubernetes(path string, node *yaml.Node, into reflect.Value, what string) {
	var plain any
	err := node.Decode(&plain)
	if err == nil {
		var raw []byte
		if raw, err = json.Marshal(plain); err == nil {
			err = kyaml.UnmarshalStrict(raw, into.Addr().Interface())
		}
	}
	if err != nil {
		d.refuse(path, node, "must be %s: %s", what, lastClause(err))
	}
}

// typeName says in words what a value of a type looks like.
func typeName(t reflect.Type) string {
	names := map[string]string{
		"string": "a string (in quotes if it looks like something else)", "bool": "true or false", "int": "a whole number", "float64": "a number",
		"time.Duration": "a duration with its unit, such as 30s", "slog.Level": "debug, info, warn or error",
		"config.MoveLimit": moveLimitRule, "config.Strategy": "evict or release",
		"netip.Addr": "an IP address", "netip.Prefix": "a network, such as 10.0.0.0/8",
	}
	if name, known := names[t.String()]; known {
		return name
	}
	return names[t.Kind().String()]
}

// fieldOf returns the field with a key of the file; the zero Value when there is none.
func fieldOf(section reflect.Value, key string) reflect.Value {
	for i := range section.NumField() {
		if section.Type().Field(i).Tag.Get("yaml") == key {
			return section.Field(i)
		}
	}
	return reflect.Value{}
}

func keysOf(section reflect.Type) []string {
	keys := make([]string, section.NumField())
	for i := range keys {
		keys[i] = section.Field(i).Tag.Get("yaml")
	}
	return keys
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// show renders what was given, on one line.
func show(node *yaml.Node) string {
	switch {
	case node.Kind == yaml.ScalarNode && node.Tag == "!!str":
		return fmt.Sprintf("%q", node.Value)
	case node.Kind == yaml.ScalarNode && node.Tag == "!!null":
		return "(empty)"
	case node.Kind == yaml.ScalarNode:
		return node.Value
	case node.Kind == yaml.SequenceNode:
		return "(a list)"
	default:
		return "(a section)"
	}
}

// lastClause drops the packages' names that JSON errors begin with.
func lastClause(err error) string {
	text := err.Error()
	if i := strings.LastIndex(text, "json: "); i >= 0 {
		text = text[i+len("json: "):]
	}
	return text
}
