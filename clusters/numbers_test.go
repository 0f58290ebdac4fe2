package clusters

import (
	"context"
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/plimsoll-dev/plimsoll/clusters/internal/caching"
)

func TestSoManyMembersJoinAtOnceAndNoMore(t *testing.T) {
	g := NewWithT(t)
	turns := newJoins()
	for range joinsAtOnce {
		g.Expect(turns.enter(t.Context())).To(BeTrue())
	}
	ended, end := context.WithCancel(t.Context())
	end()
	g.Expect(turns.enter(ended)).To(BeFalse(), "all turns are taken")
	turns.leave()
	g.Expect(turns.enter(t.Context())).To(BeTrue())
}

func TestMembersThatHangGiveUpTheirTurnToJoin(t *testing.T) {
	f, hung, api := newFleet(t), newFakeAPI(t, "hung"), newFakeAPI(t, "a")
	hung.fault("/readyz", hangs)
	for i := range 2 * joinsAtOnce {
		f.secrets.put(fmt.Sprintf("hung-%d", i), hung.kubeconfig())
	}
	f.g.Eventually(func() int { return hung.count("GET /readyz") }).Should(BeNumerically(">=", joinsAtOnce))
	f.secrets.put("a", api.kubeconfig())
	f.g.Eventually(f.state("a")).Should(Equal("Ready/Ready"))
}

func TestPermissionsAreAskedForOnceWhereTheMemberTellsItsRules(t *testing.T) {
	for name, test := range map[string]struct {
		rules   []authorizationv1.ResourceRule
		denied  bool
		reviews int
		want    string
	}{
		"all":         {rules: []authorizationv1.ResourceRule{{Verbs: []string{"*"}, APIGroups: []string{"*"}, Resources: []string{"*"}}}, want: "True/Permitted"},
		"not all":     {rules: []authorizationv1.ResourceRule{{Verbs: []string{"list", "watch"}, APIGroups: []string{""}, Resources: []string{"pods", "configmaps"}}}, denied: true, reviews: 1, want: "False/NotPermitted"},
		"by others":   {rules: []authorizationv1.ResourceRule{{Verbs: []string{"list", "watch"}, APIGroups: []string{""}, Resources: []string{"pods", "configmaps"}}}, reviews: 1, want: "True/Permitted"},
		"do not tell": {reviews: 3, want: "True/Permitted"},
	} {
		t.Run(name, func(t *testing.T) {
			f, api := newFleet(t), newFakeAPI(t, "a")
			api.rules = test.rules
			api.deny("create pods", test.denied)
			f.secrets.put("a", api.kubeconfig())
			f.g.Eventually(f.condition("a", ConditionPermitted)).Should(Equal(test.want))
			f.g.Eventually(f.condition("a", ConditionWarm)).Should(Equal("True/Warm"))
			const one = "POST /apis/authorization.k8s.io/v1/selfsubject"
			f.g.Expect(api.count(one + "rulesreviews")).To(Equal(1))
			f.g.Expect(api.count(one + "accessreviews")).To(BeNumerically(">=", test.reviews))
			if !test.denied { // what is denied is asked about again
				f.g.Expect(api.count(one + "accessreviews")).To(Equal(test.reviews))
			}
		})
	}
}

func TestRulesAreReadAsRBACReadsThem(t *testing.T) {
	g := NewWithT(t)
	rule := func(group, resource, name string) authorizationv1.ResourceRule {
		r := authorizationv1.ResourceRule{Verbs: []string{"get"}, APIGroups: []string{group}, Resources: []string{resource}}
		if name != "" {
			r.ResourceNames = []string{name}
		}
		return r
	}
	q := question{Access: Access{Resource: "pods", Subresource: "eviction", Name: "web"}}
	for _, granted := range []authorizationv1.ResourceRule{
		rule("", "pods/eviction", ""), rule("*", "pods/eviction", "web"), rule("", "*/eviction", ""), rule("", "*", ""),
	} {
		g.Expect(grants(granted, q, "get")).To(BeTrue(), "%+v", granted)
	}
	for _, other := range []authorizationv1.ResourceRule{
		rule("", "pods", ""), rule("apps", "pods/eviction", ""), rule("", "pods/eviction", "other"), rule("", "*/scale", ""),
	} {
		g.Expect(grants(other, q, "get")).To(BeFalse(), "%+v", other)
	}
	g.Expect(grants(rule("", "*", ""), q, "create")).To(BeFalse())
	g.Expect(grants(rule("", "pods/eviction", "web"), question{Access: Access{Resource: "pods", Subresource: "eviction"}}, "get")).To(BeFalse(),
		"a rule for one object is none for all")
}

func TestAGroupIsAskedAboutOnceForAllItsKindsAndSeldomWhenItIsMissing(t *testing.T) {
	f, api := newFleet(t, func(o *Options) {
		for _, kind := range []string{"Alpha", "Beta", "Gamma"} {
			object := &unstructured.Unstructured{}
			object.SetGroupVersionKind(schema.GroupVersionKind{Group: "missing.example", Version: "v1", Kind: kind})
			o.Kinds = append(o.Kinds, Kind{Object: object, Optional: true})
		}
	}), newFakeAPI(t, "a")
	f.secrets.put("a", api.kubeconfig())
	f.awaitReady("a")
	f.g.Expect(api.count("GET /api/v1")).To(BeNumerically(">=", 1))
	discovered := 0
	api.mu.Lock()
	for _, request := range api.requests {
		if request == "GET /api/v1" {
			discovered++
		}
	}
	api.mu.Unlock()
	f.g.Expect(discovered).To(Equal(1), "for "+caching.KindName(corev1.SchemeGroupVersion.WithKind("Pod"))+" and ConfigMap")
	f.g.Eventually(func() int { return api.count("GET /apis/missing.example/v1") }).Should(BeNumerically(">=", 3))
	began := time.Now()
	before := api.count("GET /apis/missing.example/v1")
	probes := api.count("GET /readyz")
	f.g.Eventually(func() int { return api.count("GET /readyz") - probes }).Should(BeNumerically(">=", 20)) // more than 1 s
	// Three kinds look every 50 ms. The group is asked about after 80, 160, 320 ms, and then twice a second, however slow this machine is.
	most := 5 + int(time.Since(began)/(missingFactor*50*time.Millisecond))
	f.g.Expect(api.count("GET /apis/missing.example/v1") - before).To(BeNumerically("<=", most))
}
