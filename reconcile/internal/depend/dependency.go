package depend

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plimsoll-dev/plimsoll/reconcile/internal/object"
)

const (
	// How long an object waits until it looks at an unmet dependency again, should no event come earlier: what is in the fleet
	// is watched besides, what is outside is not.
	retryInside  = 5 * time.Second
	retryOutside = 30 * time.Second

	// maxMissing bounds how many unmet dependencies a reason names.
	maxMissing = 5
)

// A Dependency is something that an object needs before it can be brought to its spec. Two that are made of the same arguments
// are equal.
type Dependency struct {
	member    string // empty: that of the object
	gvk       schema.GroupVersionKind
	name      types.NamespacedName
	keys      string // of a Secret or ConfigMap, sorted, joined by commas
	condition string
	status    metav1.ConditionStatus

	url      string // of an endpoint
	statuses string // expected, sorted, joined by commas; empty: 2xx
}

// OnSecret makes a dependency on a Secret; package reconcile says more about this and the next three.
func OnSecret(name types.NamespacedName, keys ...string) Dependency {
	return Dependency{gvk: secretKind, name: name, keys: joined(keys)}
}

// OnConfigMap makes a dependency on a ConfigMap.
func OnConfigMap(name types.NamespacedName, keys ...string) Dependency {
	return Dependency{gvk: configMapKind, name: name, keys: joined(keys)}
}

// OnCondition makes a dependency on a condition.
func OnCondition(gvk schema.GroupVersionKind, name types.NamespacedName, condition string, status metav1.ConditionStatus) Dependency {
	return Dependency{gvk: gvk, name: name, condition: condition, status: status}
}

// OnEndpoint makes a dependency on an HTTPS endpoint outside the fleet.
func OnEndpoint(url string, statuses ...int) Dependency {
	words := make([]string, len(statuses))
	for i, status := range statuses {
		words[i] = strconv.Itoa(status)
	}
	return Dependency{url: url, statuses: joined(words)}
}

// In is the same dependency in another member. Of an endpoint it changes nothing.
func (d Dependency) In(member string) Dependency {
	if d.url == "" {
		d.member = member
	}
	return d
}

// String names the dependency as people read it, for example "Secret default/db in member prod-eu". Of the URL of an
// endpoint it leaves out what may be secret: user and query.
func (d Dependency) String() string {
	if d.url != "" {
		return endpointName(d.url)
	}
	s := d.gvk.Kind + " " + object.StoreKey(d.name)
	if d.member != "" {
		s += " in member " + d.member
	}
	return s
}

var (
	secretKind    = corev1.SchemeGroupVersion.WithKind("Secret")
	configMapKind = corev1.SchemeGroupVersion.WithKind("ConfigMap")
)

// external reports whether it is outside the fleet.
func (d Dependency) external() bool { return d.url != "" }

// retry is when to look again.
func (d Dependency) retry() time.Duration {
	if d.external() {
		return retryOutside
	}
	return retryInside
}

// of completes a dependency with what it takes from the object that has it.
func (d Dependency) of(member, namespace string) Dependency {
	if d.external() {
		return d
	}
	d.member = cmp.Or(d.member, member)
	if d.name.Namespace == "" && d.condition == "" {
		d.name.Namespace = namespace
	}
	return d
}

func joined(words []string) string {
	words = slices.Clone(words)
	slices.Sort(words)
	return strings.Join(slices.Compact(words), ",")
}

func split(joined string) []string {
	if joined == "" {
		return nil
	}
	return strings.Split(joined, ",")
}

// endpointName is a URL without what may be secret.
func endpointName(raw string) string {
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" {
		return "an endpoint whose URL is not valid"
	}
	return u.Scheme + "://" + u.Host + u.EscapedPath()
}

// Unmet says what an object waits for.
type Unmet struct {
	missing []missing
}

// missing is one dependency that is not met, as the object that has it sees it, and why not.
type missing struct {
	dependency Dependency
	why        string
	cycle      bool
}

// String says what is waited for, and what is missing of it, for example "waits for Secret default/db: it does not exist".
// It holds no value of a Secret. The same state always gives the same words.
func (u *Unmet) String() string {
	var s strings.Builder
	s.WriteString("waits for ")
	for i, m := range u.missing {
		if i == maxMissing {
			fmt.Fprintf(&s, ", and %d more", len(u.missing)-i)
			break
		}
		if i > 0 {
			s.WriteString("; ")
		}
		s.WriteString(m.dependency.String() + ": " + m.why)
	}
	return s.String()
}

// Dependencies are those that are not met, in the order in which they were declared.
func (u *Unmet) Dependencies() []Dependency {
	all := make([]Dependency, len(u.missing))
	for i, m := range u.missing {
		all[i] = m.dependency
	}
	return all
}

// RetryAfter is when to look again. What waits for itself in a circle need not hurry. Not waits: nothing is unmet.
func RetryAfter(u *Unmet) (after time.Duration, waits bool) {
	if u == nil || len(u.missing) == 0 {
		return 0, false
	}
	after = retryOutside
	for _, m := range u.missing {
		if !m.cycle {
			after = min(after, m.dependency.retry())
		}
	}
	return after, true
}
