package clusters

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/plimsoll-dev/plimsoll/clusters/internal/intake"
)

// proberOf asks a member that answers each request with a value as JSON.
func proberOf(t *testing.T, answer func(*http.Request) any) *prober {
	t.Helper()
	p, err := newProber(&rest.Config{Host: "https://a"}, httpClient(intake.RoundTripper(func(r *http.Request) (*http.Response, error) {
		text, err := json.Marshal(answer(r))
		return &http.Response{
			StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(string(text))), Request: r,
		}, err
	})))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// A member may serve as many resources, and have as many rules, as fit into an answer. What is kept of them is in no budget.
func TestOfDiscoveryAndRulesLittleIsKeptAndNotForLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		resources, rules := 3, 3
		m := &mapper{
			prober: proberOf(t, func(r *http.Request) any {
				if r.Method == http.MethodPost {
					return authorizationv1.SelfSubjectRulesReview{Status: authorizationv1.SubjectRulesReviewStatus{ResourceRules: make([]authorizationv1.ResourceRule, rules)}}
				}
				list := metav1.APIResourceList{APIResources: []metav1.APIResource{{Name: "webs/status", Kind: "Web"}}}
				for i := range resources {
					list.APIResources = append(list.APIResources, metav1.APIResource{Name: fmt.Sprint("webs", i), Kind: fmt.Sprint("Web", i)}, metav1.APIResource{})
				}
				return list
			}), timeout: time.Minute,
			known: map[schema.GroupVersionKind]*meta.RESTMapping{}, served: map[schema.GroupVersion]served{}, missing: map[schema.GroupVersion]missing{},
		}
		mapping, err := m.RESTMapping(schema.GroupKind{Group: "a", Kind: "Web2"}, "v1")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(mapping.Resource.Resource).To(Equal("webs2"))
		g.Expect(m.served[schema.GroupVersion{Group: "a", Version: "v1"}].resources).To(HaveLen(3), "what has no kind, and subresources, are not kept")
		g.Expect(m.prober.rulesOf(t.Context(), "first")).To(HaveLen(3))

		time.Sleep(time.Minute)
		_, err = m.RESTMapping(schema.GroupKind{Group: "b", Kind: "Web0"}, "v1")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(m.served).To(HaveLen(1), "what is not fresh any more is forgotten")
		m.prober.rulesOf(t.Context(), "second")
		g.Expect(m.prober.permissions.rules).To(HaveLen(1))

		time.Sleep(time.Minute)
		resources, rules = maxServed, maxRules+1
		_, err = m.RESTMapping(schema.GroupKind{Group: "c", Kind: "Web0"}, "v1")
		g.Expect(err).To(MatchError(ContainSubstring("discover c/v1: the member serves 4001 resources, of which 2000 are read")))
		g.Expect(m.prober.rulesOf(t.Context(), "third")).To(BeEmpty(), "each right is asked about then")
	})
}
