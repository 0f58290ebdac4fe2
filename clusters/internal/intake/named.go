package intake

import (
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/clusters/plain"
)

// MaxName and MaxNamespace are how long names may be in Kubernetes, in bytes.
const (
	MaxName      = 253
	MaxNamespace = 63
)

// checkName refuses an object whose name, namespace or UID no API server would have let pass: they are shown in logs, metrics and
// answers of the API, and are keys of much that the hub remembers.
func checkName(object client.Object) error {
	name, namespace, uid := object.GetName(), object.GetNamespace(), string(object.GetUID())
	if plain.Text(name, MaxName) != name || plain.Text(namespace, MaxNamespace) != namespace || plain.Text(uid, MaxName) != uid {
		return fmt.Errorf("an object: %w: its name, its namespace or its UID is too long, or has characters that none may have", ErrUnreadable)
	}
	return nil
}
