package spot

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
)

func TestWhatIsNotEnabledIsToldWhichLabelIsMissingOnWhat(t *testing.T) {
	const workloadLacks = "Deployment shop/web does not have the label plimsoll.dev/enabled=true"
	const namespaceLacks = "namespace shop does not have the label plimsoll.dev/enabled=true"
	key := policy.WorkloadKey{Kind: KindDeployment, NamespacedName: types.NamespacedName{Namespace: "shop", Name: "web"}}
	for name, c := range map[string]struct {
		workload, namespace string
		want                NotEnabled
	}{
		"the workload":  {"", "true", NotEnabled{Workload: true, Reason: workloadLacks}},
		"the namespace": {"true", "", NotEnabled{Namespace: true, Reason: namespaceLacks}},
		"both":          {"", "", NotEnabled{Workload: true, Namespace: true, Reason: workloadLacks + ", and " + namespaceLacks}},
		"misspelt":      {"yes", "true", NotEnabled{Workload: true, Reason: "Deployment shop/web has the label plimsoll.dev/enabled=yes; the value must be true"}},
		"neither":       {"true", "true", NotEnabled{Reason: "Deployment shop/web is enabled and not planned yet"}},
	} {
		s := newShell(t, nil, false, deployment(2, c.workload, nil))
		s.cache(namespace(c.namespace, nil))
		c.want.Label = "plimsoll.dev/enabled"
		if got, err := s.WhyNotEnabled(t.Context(), testMember, key); err != nil || got != c.want {
			t.Errorf("%s: %+v, error %v, want %+v", name, got, err, c.want)
		}
		if s.reads.Load() != 1 {
			t.Errorf("%s: %d live reads", name, s.reads.Load())
		}
	}
}

func TestWhatCannotBeToldOfAWorkloadThatIsNotPlacedIsAnError(t *testing.T) {
	s := newShell(t, nil, false)
	s.cache(namespace("true", nil))
	key := policy.WorkloadKey{Kind: KindStatefulSet, NamespacedName: types.NamespacedName{Namespace: "shop", Name: "web"}}
	if _, err := s.WhyNotEnabled(t.Context(), testMember, key); !NoWorkload(err) {
		t.Errorf("there is none: %v", err)
	}
	key.Kind = "Job"
	if _, err := s.WhyNotEnabled(t.Context(), testMember, key); !errors.Is(err, ErrNotKnown) {
		t.Errorf("a kind that is not placed: %v", err)
	}
	key.Kind = KindDeployment
	if _, err := s.WhyNotEnabled(t.Context(), "other", key); !errors.Is(err, ErrNotKnown) {
		t.Errorf("a member that nobody follows: %v", err)
	}
	s.follower.directory.only = []string{"cart"}
	if got, err := s.WhyNotEnabled(t.Context(), testMember, key); err != nil || !strings.Contains(got.Reason, "not registered for namespace shop") || s.reads.Load() != 1 {
		t.Errorf("another tenant's namespace: %+v, error %v, %d reads", got, err, s.reads.Load())
	}
}

// saidEvents keeps Warnings.
type saidEvents struct{ all []string }

func (*saidEvents) Normal(string, string, ...any) {}
func (e *saidEvents) Warning(reason, format string, args ...any) {
	e.all = append(e.all, reason+": "+fmt.Sprintf(format, args...))
}

func TestAnEventSaysOnceWhichLabelIsMissing(t *testing.T) {
	const label = "plimsoll.dev/enabled"
	selector, err := labels.Parse("team!=infra")
	if err != nil {
		t.Fatal(err)
	}
	on := map[string]string{label: "true"}
	for name, c := range map[string]struct {
		workload, namespace map[string]string
		want                string
	}{
		"both have it":              {on, on, ""},
		"the namespace lacks it":    {on, nil, "NotEnabled: Namespace shop does not have the label plimsoll.dev/enabled=true"},
		"the namespace misspelt it": {on, map[string]string{label: "True"}, "NotEnabled: Namespace shop has the label plimsoll.dev/enabled=True; the value must be true"},
		"the hub leaves it out":     {on, map[string]string{label: "true", "team": "infra"}, "NotEnabled: The hub's namespaceSelector does not select namespace shop"},
		"the workload is off":       {map[string]string{label: "false"}, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			d, events := newDirectory(policy.Keys{Prefix: policy.DefaultPrefix}, policy.Defaults{}, selector), &saidEvents{}
			d.setNamespace(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", Labels: c.namespace}}, false)
			s := &subject{
				key:  policy.WorkloadKey{Kind: KindDeployment, NamespacedName: types.NamespacedName{Namespace: "shop", Name: "web"}},
				meta: &metav1.ObjectMeta{Labels: c.workload}, events: events,
			}
			d.reportLack(s)
			d.reportLack(s) // a resync
			if c.want == "" && len(events.all) > 0 || c.want != "" && (len(events.all) != 1 || !strings.HasPrefix(events.all[0], c.want)) {
				t.Fatalf("Events %q, want %q once", events.all, c.want)
			}
			if c.want == "" {
				return
			}
			d.setNamespace(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", Labels: on}}, false)
			d.reportLack(s)
			d.setNamespace(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", Labels: c.namespace}}, false)
			d.reportLack(s)
			if len(events.all) != 2 {
				t.Errorf("after it was enabled and disabled again: %q", events.all)
			}
		})
	}
}
