package config_test

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/plimsoll-dev/plimsoll/hub/config"
)

// mirrorConfig is the section of a module.
type mirrorConfig struct {
	MaxCopies int           `yaml:"maxCopies"`
	Every     time.Duration `yaml:"every"`
	Only      struct {
		Namespaces []string `yaml:"namespaces"`
	} `yaml:"only"`
}

// Check implements [config.Checked].
func (c *mirrorConfig) Check() (refused field.ErrorList) {
	if c.MaxCopies < 1 {
		refused = append(refused, field.Invalid(field.NewPath("maxCopies"), c.MaxCopies, "must be at least 1"))
	}
	return refused
}

// decoded is the section of the module trust-mirror in a file and an environment.
func decoded(t *testing.T, text string, environ ...string) (*mirrorConfig, string, error) {
	t.Helper()
	file := writeConfig(t, text)
	loaded, err := config.Load(file, environ)
	if err != nil {
		return nil, file, err
	}
	section := &mirrorConfig{MaxCopies: 7, Every: time.Minute}
	return section, file, loaded.Modules.Decode(map[string]any{"trust-mirror": section, "webapp": nil})
}

func TestAModuleReadsItsSectionAndVariablesWin(t *testing.T) {
	got, _, err := decoded(t, "modules: {trust-mirror: {maxCopies: 3, only: {namespaces: [shop]}}}", "PLIMSOLL_MODULES_TRUST_MIRROR_MAXCOPIES=9",
		"PLIMSOLL_MODULES_TRUST_MIRROR_ONLY_NAMESPACES=cart, pay")
	if err != nil || got.MaxCopies != 9 || got.Every != time.Minute || strings.Join(got.Only.Namespaces, " ") != "cart pay" {
		t.Errorf("%+v, %v", got, err)
	}
	if got, _, err = decoded(t, ""); err != nil || got.MaxCopies != 7 {
		t.Errorf("without a section: %+v, %v", got, err)
	}
	if got, _, err = decoded(t, "modules:\n  trust-mirror:\n"); err != nil || got.MaxCopies != 7 {
		t.Errorf("with an empty section: %+v, %v", got, err)
	}
}

func TestWhatIsWrongInTheSectionOfAModuleIsNamed(t *testing.T) {
	for text, want := range map[string]string{
		"modules: {trust-mirror: {maxCopys: 3}}":              "FILE: modules.trust-mirror.maxCopys: 3: unknown key; known here: maxCopies, every, only",
		"modules: {trust-mirror: {every: often}}":             `FILE: modules.trust-mirror.every: "often": must be a duration`,
		"modules: {trust-mirror: {only: {namespaces: 1}}}":    "FILE: modules.trust-mirror.only.namespaces: 1: must be a list",
		"modules: {trust-mirror: {maxCopies: 0}}":             "FILE: modules.trust-mirror.maxCopies: 0: must be at least 1",
		"modules: {trust-miror: {maxCopies: 1}}":              "FILE: modules.trust-miror: no module of this hub has this name",
		"modules: {webapp: {maxReplicas: 1}}":                 "FILE: modules.webapp: this module has no configuration",
		"modules: 7":                                          "FILE: modules: 7: must have a section for each module",
		"modules: {trust-mirror: {}, trust-mirror: {}}":       "FILE: modules.trust-mirror: (a section): is given twice",
		"env PLIMSOLL_MODULES_TRUST_MIRROR_MAXCOPIES=-1":      "PLIMSOLL_MODULES_TRUST_MIRROR_MAXCOPIES: modules.trust-mirror.maxCopies: -1: must be at least 1",
		"env PLIMSOLL_MODULES_TRUST_MIRROR_MAXCOPIES=many":    `PLIMSOLL_MODULES_TRUST_MIRROR_MAXCOPIES: modules.trust-mirror.maxCopies: "many": must be a whole number`,
		"env PLIMSOLL_MODULES_TRUST_MIRROR_MAXCOPYS=3":        "PLIMSOLL_MODULES_TRUST_MIRROR_MAXCOPYS: no key of the configuration has this name",
		"env PLIMSOLL_MODULES={trust-mirror: {maxCopies: 3}}": "PLIMSOLL_MODULES: no key of the configuration has this name",
	} {
		var environ []string
		body := text
		if variable, is := strings.CutPrefix(text, "env "); is {
			body, environ = "", []string{variable}
		}
		_, file, err := decoded(t, body, environ...)
		if want = strings.Replace(want, "FILE", file, 1); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s:\n got %v\nwant %s", text, err, want)
		}
	}
}

func TestTheConfigurationOfAModuleMustBeAStruct(t *testing.T) {
	var sections config.ModuleSections
	for _, into := range []any{mirrorConfig{}, new(int), (*mirrorConfig)(nil)} {
		if err := sections.Decode(map[string]any{"mirror": into}); err == nil || !strings.Contains(err.Error(), `module "mirror"`) {
			t.Errorf("%T: %v", into, err)
		}
	}
}
