package webhook

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/google/uuid"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// checkAnnotation is on a pod that a hub creates, as a dry run, to see whether the member's API server reaches the webhook;
	// checkedAnnotation on the one that comes back, with the same value.
	checkAnnotation   = "plimsoll.dev/webhook-check"
	checkedAnnotation = "plimsoll.dev/webhook-checked"

	// checkEvery is the time between two checks of a member whose API server reaches the webhook, checkAgain that between two of
	// one whose API server does not or whose pods came without a decision, and checkSoon that to the next while one failure may mean that its API server has not read
	// the configuration yet.
	checkEvery = 10 * time.Minute
	checkAgain = time.Minute
	checkSoon  = 3 * time.Second
	// checksToFail are the checks in a row that must fail.
	checksToFail = 3
	// checkTimeout bounds one check: the API server waits for the webhook for calledTimeout.
	checkTimeout = 10 * time.Second
)

// outcomes of a check.
type reached uint8

const (
	notChecked reached = iota // the last check said nothing
	isReached
	notReached
)

// reach is what the checks of a member's API server have said.
type reach struct {
	is       reached
	why      string // it says nothing, or is not reached
	at       time.Time
	failures int // in a row
}

// next is when to check again. undecided is when pods were last seen that came without a decision.
func (r reach) next(undecided time.Time) time.Time {
	switch {
	case r.at.IsZero():
		return time.Time{}
	case r.failures > 0 && r.failures < checksToFail:
		return r.at.Add(checkSoon)
	case r.is == isReached && !undecided.After(r.at):
		return r.at.Add(checkEvery)
	}
	return r.at.Add(checkAgain)
}

// checked is what is known after a check. A single failure changes nothing that was known: the call may have been slow, or the
// API server may not have read the configuration yet.
func (r reach) checked(is reached, why string, now time.Time) reach {
	after := reach{is: is, why: why, at: now}
	if is != notReached {
		return after
	}
	if after.failures = r.failures + 1; after.failures < checksToFail && r.is != notReached {
		after.is = r.is
		if r.is == notChecked {
			after.why = "the first checks failed: " + why
		}
	}
	return after
}

// checks keeps what is known about every member. Safe for concurrent use.
type checks struct {
	mu      sync.Mutex
	members map[string]reach
}

func (c *checks) of(member string) reach {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.members[member]
}

func (c *checks) set(member string, is reach) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.members == nil {
		c.members = map[string]reach{}
	}
	c.members[member] = is
}

func (c *checks) forget(member string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.members, member)
}

// all are the members that were checked, and whether their API servers reach the webhook.
func (c *checks) all() map[string]bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	known := map[string]bool{}
	for member, is := range c.members {
		if is.is != notChecked {
			known[member] = is.is == isReached
		}
	}
	return known
}

// checkPod is a pod that the webhook is asked about: a controller's, in an enabled namespace. Its labels are those of a probe,
// for only probes may the hub create; see hub/confine.
func checkPod(namespace, image, prefix, nonce string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: "plimsoll-check-" + nonce,
			Labels:      map[string]string{prefix + "/slot": "probe", "app.kubernetes.io/name": "plimsoll-probe", "app.kubernetes.io/managed-by": "plimsoll"},
			Annotations: map[string]string{checkAnnotation: nonce},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "plimsoll-check", UID: types.UID(nonce), Controller: new(true),
			}},
		},
		Spec: corev1.PodSpec{
			AutomountServiceAccountToken: new(false), EnableServiceLinks: new(false), TerminationGracePeriodSeconds: new(int64(0)),
			SecurityContext: &corev1.PodSecurityContext{
				RunAsNonRoot: new(true), RunAsUser: new(int64(65535)),
				SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
			},
			Containers: []corev1.Container{{
				Name: "check", Image: image,
				SecurityContext: &corev1.SecurityContext{
					AllowPrivilegeEscalation: new(false), ReadOnlyRootFilesystem: new(true),
					Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
				},
			}},
		},
	}
}

// check creates a pod as a dry run through the member's API server, and looks whether the webhook marked it. Nothing is stored.
func (i *Installer) check(ctx context.Context, c client.Client, member string, wanted Wanted) (reached, string) {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	namespace := i.options.CheckNamespace(member)
	if why := asksAbout(ctx, c, namespace, wanted); why != "" {
		return notChecked, why
	}
	nonce := uuid.NewString()
	pod := checkPod(namespace, i.options.CheckImage, wanted.prefix(), nonce)
	switch err := c.Create(ctx, pod, client.DryRunAll); {
	case apierrors.IsForbidden(err), apierrors.IsInvalid(err):
		return notChecked, fmt.Sprintf("a dry run of a pod in namespace %s is refused, so it is unknown whether the API server reaches the hub; "+
			"run `plimsoll register` again to give the hub's account the right: %v", namespace, err)
	case err != nil:
		return notChecked, fmt.Sprintf("a dry run of a pod in namespace %s failed: %v", namespace, err)
	}
	if pod.Annotations[checkedAnnotation] == nonce {
		return isReached, ""
	}
	return notReached, fmt.Sprintf("the member's API server gets no answer from %s: new pods run where the scheduler puts them, and the hub moves them later%s",
		wanted.BaseURL.Host, hintOf(wanted.BaseURL))
}

// asksAbout says why the webhook is not called for pods of a namespace; "": it is.
func asksAbout(ctx context.Context, c client.Client, namespace string, wanted Wanted) string {
	var found corev1.Namespace
	if err := c.Get(ctx, client.ObjectKey{Name: namespace}, &found); err != nil {
		return fmt.Sprintf("whether the API server reaches the hub is not checked: namespace %s cannot be read: %v", namespace, err)
	}
	selector, err := metav1.LabelSelectorAsSelector(namespaceSelector(wanted))
	if err != nil || !selector.Matches(labels.Set(found.Labels)) {
		return fmt.Sprintf("whether the API server reaches the hub is not checked: the webhook is not called for namespace %s, where the hub may create pods. "+
			"Label it %s=true, which `plimsoll register` does", namespace, wanted.EnabledLabel)
	}
	return ""
}
