package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Load reads the configuration: the defaults, then the file, then the environment, each over the one before. An
// empty file name reads no file. environ is what [os.Environ] returns.
//
// Anything that is unknown, has the wrong type or is out of range is an error, and all such errors come at once, one per
// line, as "file: path.to.key: value: rule" (the variable's name represents the file where a variable is at fault).
func Load(file string, environ []string) (Config, error) {
	config := Default()
	origin := map[string]string{} // of values that are not defaults, by path
	var problems []error
	if file != "" {
		found, err := config.readFile(file, origin)
		if err != nil {
			return Config{}, err
		}
		problems = append(problems, found...)
	}
	problems = append(problems, config.readEnvironment(environ, origin)...)
	if len(problems) == 0 {
		config.Derive(environ)
		problems = describe(config.check(), func(path string) string { return originOf(origin, path) })
	}
	if err := errors.Join(problems...); err != nil {
		return Config{}, err
	}
	return config, nil
}

// readFile puts the file's values into c.
func (c *Config) readFile(file string, origin map[string]string) ([]error, error) {
	raw, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read configuration: %w", err)
	}
	documents := yaml.NewDecoder(bytes.NewReader(raw))
	var document, second yaml.Node
	if err := documents.Decode(&document); errors.Is(err, io.EOF) {
		return nil, nil // nothing but comments
	} else if err != nil {
		return nil, fmt.Errorf("%s: not YAML: %w", file, err)
	}
	if err := documents.Decode(&second); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s: must be one YAML document, and has more", file)
	}
	var d decoder
	d.decode("", document.Content[0], reflect.ValueOf(c).Elem())
	c.Modules.file = file
	for _, leaf := range Leaves() {
		origin[leaf.Path] = file
	}
	return describe(d.problems, func(string) string { return file }), nil
}

// Derive fills what is empty from the environment that Kubernetes gives to a pod.
func (c *Config) Derive(environ []string) {
	if c.Hub.Namespace == "" {
		c.Hub.Namespace = Lookup(environ, "POD_NAMESPACE")
	}
	if c.Hub.Namespace == "" {
		c.Hub.Namespace = "plimsoll-system"
	}
	if c.Hub.RegistrationNamespace == "" {
		c.Hub.RegistrationNamespace = c.Hub.Namespace
	}
	if c.LeaderElection.LeaseNamespace == "" {
		c.LeaderElection.LeaseNamespace = c.Hub.Namespace
	}
}

// describe turns problems into errors that say where the value came from.
func describe(problems field.ErrorList, origin func(path string) string) []error {
	found := make([]error, 0, len(problems))
	for _, p := range problems {
		parts := slices.DeleteFunc([]string{origin(p.Field), p.Field, fmt.Sprint(p.BadValue), p.Detail}, func(part string) bool { return part == "" })
		found = append(found, errors.New(strings.Join(parts, ": ")))
	}
	return found
}

// originOf finds where the value at path came from; path may lie within a leaf.
func originOf(origin map[string]string, path string) string {
	for _, leaf := range Leaves() {
		if leaf.Path == path || strings.HasPrefix(path, leaf.Path+".") || strings.HasPrefix(path, leaf.Path+"[") {
			if from, ok := origin[leaf.Path]; ok {
				return from
			}
			return "default"
		}
	}
	return ""
}

// Lookup returns the value of a variable in an environment of NAME=value; empty: it is not set.
func Lookup(environ []string, name string) string {
	for _, entry := range environ {
		if value, ok := strings.CutPrefix(entry, name+"="); ok {
			return value
		}
	}
	return ""
}
