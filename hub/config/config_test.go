package config_test

import (
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/plimsoll-dev/plimsoll/hub/config"
	"github.com/plimsoll-dev/plimsoll/hub/internal/sample"
)

// inFile nests a value as the file has it.
func inFile(values map[string]string) string {
	var text strings.Builder
	var open []string // sections
	for _, path := range slices.Sorted(maps.Keys(values)) {
		segments := strings.Split(path, ".")
		sections, key := segments[:len(segments)-1], segments[len(segments)-1]
		for i, section := range sections {
			if i >= len(open) || open[i] != section {
				text.WriteString(strings.Repeat("  ", i) + section + ":\n")
			}
		}
		open = sections
		text.WriteString(strings.Repeat("  ", len(sections)) + key + ": " + values[path] + "\n")
	}
	return text.String()
}

func writeConfig(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "hub.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func with(path, value string) map[string]string {
	values := map[string]string{path: value}
	for other, value := range sample.AlsoFor[path] {
		values[other] = value
	}
	return values
}

// expected is the default configuration with the sample of one key, and what that key needs.
func expected(t *testing.T, path string) config.Config {
	t.Helper()
	made := config.Default()
	for _, leaf := range config.Leaves() {
		field := reflect.ValueOf(&made).Elem().FieldByIndex(leaf.Index)
		if leaf.Path == path {
			field.Set(reflect.ValueOf(sample.Of[path].Want))
		} else if value, ok := sample.AlsoFor[path][leaf.Path]; ok {
			field.SetString(value)
		}
	}
	made.Derive(nil)
	return made
}

func TestEveryKeyIsReadFromTheFileAndChangesNothingElse(t *testing.T) {
	for _, leaf := range config.Leaves() {
		t.Run(leaf.Path, func(t *testing.T) {
			s, ok := sample.Of[leaf.Path]
			if !ok {
				t.Fatal("this key has no sample: add one")
			}
			got, err := config.Load(writeConfig(t, inFile(with(leaf.Path, s.File))), nil)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(expected(t, leaf.Path), got, sample.ByValue); diff != "" {
				t.Errorf("configuration differs (-want +got):\n%s", diff)
			}
			if def := config.Default(); cmp.Equal(def, got, sample.ByValue) {
				t.Error("the sample is the default: it shows nothing")
			}
		})
	}
}

func TestEveryKeyIsReadFromTheEnvironmentOverTheFile(t *testing.T) {
	for _, leaf := range config.Leaves() {
		t.Run(leaf.Path, func(t *testing.T) {
			s := sample.Of[leaf.Path]
			var environ []string
			for path, value := range with(leaf.Path, s.File) {
				if path == leaf.Path && s.Env != "" {
					value = s.Env
				}
				environ = append(environ, config.EnvName(path)+"="+value)
			}
			got, err := config.Load(writeConfig(t, "controller: {workers: 77}\n"), environ)
			if err != nil {
				t.Fatal(err)
			}
			want := expected(t, leaf.Path)
			if leaf.Path != "controller.workers" {
				want.Controller.Workers = 77
			}
			if diff := cmp.Diff(want, got, sample.ByValue); diff != "" {
				t.Errorf("configuration differs (-want +got):\n%s", diff)
			}
		})
	}
}

func TestABadValueStopsTheStartNamingFileKeyValueAndRule(t *testing.T) {
	for _, leaf := range config.Leaves() {
		t.Run(leaf.Path, func(t *testing.T) {
			bad := sample.Of[leaf.Path].Bad
			if bad == "" {
				t.Fatal("this key has no bad sample: add one")
			}
			file := writeConfig(t, inFile(with(leaf.Path, bad)))
			_, err := config.Load(file, nil)
			if err == nil {
				t.Fatalf("%s was accepted", bad)
			}
			if !strings.HasPrefix(err.Error(), file+": "+leaf.Path) {
				t.Errorf("error does not begin with file and key: %v", err)
			}
			for _, line := range strings.Split(err.Error(), "\n") {
				if strings.Count(line, ": ") < 2 {
					t.Errorf("error lacks file, key, value or rule: %s", line)
				}
			}
		})
	}
}

func TestNoTwoKeysShareAVariable(t *testing.T) {
	seen := map[string]string{}
	for _, leaf := range config.Leaves() {
		name := config.EnvName(leaf.Path)
		if other, ok := seen[name]; ok {
			t.Errorf("%s and %s are both %s", leaf.Path, other, name)
		}
		seen[name] = leaf.Path
	}
	if config.EnvName("spot.maxMoves") != "PLIMSOLL_SPOT_MAXMOVES" {
		t.Error("the mapping is part of the contract")
	}
}
