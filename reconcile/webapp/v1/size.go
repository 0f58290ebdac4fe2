package v1

import "fmt"

// How many items the lists may have of a WebApp that the hub looks at. Each container takes much more memory than text, and has all
// of envFrom once more. The CRD permits 16 and 32, but an API server may have stored one without it.
const (
	maxContainers = 1000
	maxEnvFrom    = 256
)

// CheckSize refuses a WebApp with so many containers, or so many items in envFrom, that the hub does not look at it.
func CheckSize(containers, envFrom int) error {
	if containers > maxContainers {
		return fmt.Errorf("spec.containers: has %d items: must have at most %d", containers, maxContainers)
	}
	if envFrom > maxEnvFrom {
		return fmt.Errorf("spec.envFrom: has %d items: must have at most %d", envFrom, maxEnvFrom)
	}
	return nil
}
