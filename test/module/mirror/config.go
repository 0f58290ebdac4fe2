package mirror

import "k8s.io/apimachinery/pkg/util/validation/field"

// Config is the section modules.mirror of the hub's configuration.
type Config struct {
	// MaxCopies is how many namespaces one source may name. At least 1; default 50.
	MaxCopies int `yaml:"maxCopies"`
}

// DefaultConfig has the defaults.
func DefaultConfig() Config { return Config{MaxCopies: 50} }

// Check says what is out of range; the hub names the key and where its value came from.
func (c *Config) Check() (refused field.ErrorList) {
	if c.MaxCopies < 1 {
		refused = append(refused, field.Invalid(field.NewPath("maxCopies"), c.MaxCopies, "must be at least 1"))
	}
	return refused
}
