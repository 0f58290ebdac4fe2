package config

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// modulesKey is the section that holds a section for each module.
const modulesKey = "modules"

// ModuleSections are the sections of modules as they were written. What may be in one, its module says: see
// [ModuleSections.Decode]. The zero value has none.
type ModuleSections struct {
	file     string
	sections map[string]*yaml.Node
	environ  map[string]string // by the names of variables
}

var sectionsType = reflect.TypeFor[ModuleSections]()

// Checked is a section that can say what is out of range, by paths within it: field.NewPath("maxCopies") for its key maxCopies.
type Checked interface {
	Check() field.ErrorList
}

// decodeSections keeps the sections of the file until the modules are known.
func (d *decoder) decodeSections(path string, node *yaml.Node, into *ModuleSections) {
	if node.Kind != yaml.MappingNode {
		d.refuse(path, node, "must have a section for each module")
		return
	}
	into.sections = map[string]*yaml.Node{}
	for i := 0; i+1 < len(node.Content); i += 2 {
		name := node.Content[i].Value
		if into.sections[name] != nil {
			d.refuse(join(path, name), node.Content[i+1], "is given twice")
			continue
		}
		into.sections[name] = node.Content[i+1]
	}
}

// takeVariable keeps a variable that may be about a key of a module.
func (s *ModuleSections) takeVariable(name, value string) bool {
	if !strings.HasPrefix(name, EnvName(modulesKey)+"_") {
		return false
	}
	if s.environ == nil {
		s.environ = map[string]string{}
	}
	s.environ[name] = value
	return true
}

// Equal reports whether two hold the same keys and variables, wherever they came from.
func (s ModuleSections) Equal(other ModuleSections) bool {
	return reflect.DeepEqual(s.sections, other.sections) && maps.Equal(s.environ, other.environ)
}

// Decode puts the section of each module into what it is read into, by the module's name: pointers to structs whose fields have
// the tag yaml and hold the defaults, or nil for a module that has no configuration. It is as strict as for the hub's own keys,
// variables win as they do there, and all problems are returned at once.
func (s *ModuleSections) Decode(into map[string]any) error {
	var problems []error
	known := map[string]bool{} // variables
	for _, name := range slices.Sorted(maps.Keys(into)) {
		if into[name] == nil {
			continue
		}
		value := reflect.ValueOf(into[name])
		if value.Kind() != reflect.Pointer || value.IsNil() || value.Elem().Kind() != reflect.Struct {
			return fmt.Errorf("module %q: its configuration is a %T, and must be a pointer to a struct", name, into[name])
		}
		problems = append(problems, s.decodeOne(name, value.Elem(), known)...)
	}
	for _, name := range slices.Sorted(maps.Keys(s.sections)) {
		switch section, is := into[name]; {
		case !is:
			problems = append(problems, fmt.Errorf("%s: %s: no module of this hub has this name", s.file, join(modulesKey, name)))
		case section == nil:
			problems = append(problems, fmt.Errorf("%s: %s: this module has no configuration", s.file, join(modulesKey, name)))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.environ)) {
		if !known[name] {
			problems = append(problems, fmt.Errorf("%s: no key of the configuration has this name", name))
		}
	}
	return errors.Join(problems...)
}

// decodeOne reads one section, and notes which variables are about it.
func (s *ModuleSections) decodeOne(name string, into reflect.Value, known map[string]bool) (problems []error) {
	path, origin := join(modulesKey, name), map[string]string{}
	if node := s.sections[name]; node != nil {
		var d decoder
		d.decode(path, node, into)
		problems = describe(d.problems, func(string) string { return s.file })
	}
	for _, leaf := range leavesBelow(path, nil, into.Type()) {
		origin[leaf.Path] = s.file
		variable := moduleEnvName(leaf.Path)
		known[variable] = true
		if value := s.environ[variable]; value != "" {
			var d decoder
			d.decode(leaf.Path, envNode(leaf.typ, value), into.FieldByIndex(leaf.Index))
			problems = append(problems, describe(d.problems, func(string) string { return variable })...)
			origin[leaf.Path] = variable
		}
	}
	checked, is := into.Addr().Interface().(Checked)
	if !is || len(problems) > 0 {
		return problems
	}
	var wrong field.ErrorList
	for _, refused := range checked.Check() {
		wrong = append(wrong, problem(join(path, refused.Field), refused.BadValue, refused.Detail))
	}
	return describe(wrong, func(path string) string { return origin[path] })
}

// moduleEnvName is [EnvName] for names of modules, which may have dashes.
func moduleEnvName(path string) string { return strings.ReplaceAll(EnvName(path), "-", "_") }
