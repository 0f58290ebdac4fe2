package config

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// envPrefix begins the name of every variable that configures the hub.
const envPrefix = "PLIMSOLL_"

// EnvName returns the variable that overrides the key at path: PLIMSOLL_ and the path in capitals, its segments joined by
// _. For spot.maxMoves that is PLIMSOLL_SPOT_MAXMOVES.
func EnvName(path string) string {
	return envPrefix + strings.ToUpper(strings.ReplaceAll(path, ".", "_"))
}

// Leaf is a key that holds a value; lists and Kubernetes types are one value.
type Leaf struct {
	Path  string // its segments joined by dots
	Index []int  // of the field, from Config
	typ   reflect.Type
}

// Leaves returns every key of the configuration, but for those of modules, in the order of its declaration.
func Leaves() []Leaf { return leavesBelow("", nil, reflect.TypeFor[Config]()) }

func leavesBelow(path string, index []int, section reflect.Type) []Leaf {
	var found []Leaf
	for i := range section.NumField() {
		field := section.Field(i)
		if field.Type == sectionsType {
			continue // their keys are the modules'
		}
		at, below := join(path, field.Tag.Get("yaml")), append(index[:len(index):len(index)], i)
		_, foreign := kubernetesTypes[field.Type]
		if field.Type.Kind() == reflect.Struct && !foreign && !reflect.PointerTo(field.Type).Implements(textType) {
			found = append(found, leavesBelow(at, below, field.Type)...)
			continue
		}
		found = append(found, Leaf{Path: at, Index: below, typ: field.Type})
	}
	return found
}

// ofTheCLI are the variables of the command-line client, which somebody who starts a hub by hand may have exported.
var ofTheCLI = []string{
	"PLIMSOLL_API", "PLIMSOLL_CA_FILE", "PLIMSOLL_CLIENT_CERTIFICATE", "PLIMSOLL_CLIENT_KEY", "PLIMSOLL_HUB_CONTEXT", "PLIMSOLL_TOKEN", "PLIMSOLL_TOKEN_FILE",
}

// readEnvironment puts the values of PLIMSOLL_ variables into c. An empty variable counts as not set. A variable that
// names no key is a problem: a misspelt override must not be overlooked.
func (c *Config) readEnvironment(environ []string, origin map[string]string) []error {
	byName := map[string]Leaf{}
	for _, leaf := range Leaves() {
		byName[EnvName(leaf.Path)] = leaf
	}
	var problems []error
	for _, entry := range environ {
		name, value, _ := strings.Cut(entry, "=")
		if !strings.HasPrefix(name, envPrefix) || value == "" || slices.Contains(ofTheCLI, name) || isServiceLink(name, value, environ) {
			continue
		}
		leaf, ok := byName[name]
		if !ok && c.Modules.takeVariable(name, value) {
			continue
		}
		if !ok {
			problems = append(problems, fmt.Errorf("%s: no key of the configuration has this name", name))
			continue
		}
		var d decoder
		d.decode(leaf.Path, envNode(leaf.typ, value), reflect.ValueOf(c).Elem().FieldByIndex(leaf.Index))
		problems = append(problems, describe(d.problems, func(string) string { return name })...)
		origin[leaf.Path] = name
	}
	return problems
}

// isServiceLink recognises the variables with which Kubernetes lists for a pod the Services of its namespace: for a
// Service plimsoll-webhook it sets PLIMSOLL_WEBHOOK_PORT=tcp://10.0.0.7:443 among others, which is also the name of a key.
func isServiceLink(name, value string, environ []string) bool {
	for _, suffix := range []string{"_SERVICE_HOST", "_SERVICE_PORT", "_PORT"} {
		service, rest, found := strings.Cut(name, suffix)
		if found && Lookup(environ, service+"_SERVICE_HOST") != "" {
			return suffix != "_PORT" || rest != "" || strings.Contains(value, "://")
		}
	}
	return false
}

// envNode turns a variable's value into YAML: text as it stands, so that it needs no quotes, lists also separated by
// commas, and everything else as in the file.
func envNode(typ reflect.Type, value string) *yaml.Node {
	text := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: value}
	if isText(typ) {
		return text
	}
	if typ.Kind() == reflect.Slice && isText(typ.Elem()) && !strings.HasPrefix(strings.TrimSpace(value), "[") {
		list := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq"}
		for item := range strings.SplitSeq(value, ",") {
			list.Content = append(list.Content, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: strings.TrimSpace(item)})
		}
		return list
	}
	var document yaml.Node
	if err := yaml.Unmarshal([]byte(value), &document); err != nil || len(document.Content) == 0 {
		return text // of the wrong type, and refused as such
	}
	return document.Content[0]
}

func isText(typ reflect.Type) bool {
	return typ.Kind() == reflect.String || typ == reflect.TypeFor[time.Duration]() || reflect.PointerTo(typ).Implements(textType)
}
