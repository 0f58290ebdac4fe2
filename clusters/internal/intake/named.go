package intake

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/clusters/plain"
)

// MaxName and MaxNamespace are how long names may be in Kubernetes, in bytes.
const (
	MaxName      = 253
	MaxNamespace = 63
)

// MaxToken is how long a resource version, or the token with which a list continues, may be, in bytes. Those of API servers have some
// dozens of bytes, and a few KiB where one stands for several clusters. The hub sends them back in URLs, with up to three bytes for
// each, and keeps the URL of a watch while the watch is open: no budget of a cache counts that. An [Intake] refuses longer texts before they
// are decoded; one that is no UTF-8 becomes up to three times as long when it is, so what was decoded is checked as well.
const MaxToken = 8 << 10

// CheckObject refuses an object whose name, namespace, UID or resource version no API server would have sent: names are shown in logs,
// metrics and answers of the API, and are keys of much that the hub remembers.
func CheckObject(object client.Object) error {
	if len(object.GetResourceVersion()) > MaxToken {
		return fmt.Errorf("an object: %w: its resource version has more than %d bytes", ErrUnreadable, MaxToken)
	}
	name, namespace, uid := object.GetName(), object.GetNamespace(), string(object.GetUID())
	if plain.Text(name, MaxName) != name || plain.Text(namespace, MaxNamespace) != namespace || plain.Text(uid, MaxName) != uid {
		return fmt.Errorf("an object: %w: its name, its namespace or its UID is too long, or has characters that none may have", ErrUnreadable)
	}
	return nil
}

// CheckList refuses a list whose resource version, or whose token with which it continues, is longer than [MaxToken].
func CheckList(list metav1.ListInterface) error {
	if len(list.GetResourceVersion()) > MaxToken || len(list.GetContinue()) > MaxToken {
		return fmt.Errorf("a list: %w: its resource version or its token to continue has more than %d bytes", ErrUnreadable, MaxToken)
	}
	return nil
}
