package spot

import (
	"errors"
	"strings"
	"testing"

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
