package clusters

import (
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/clusters/internal/intake"
	"github.com/plimsoll-dev/plimsoll/clusters/internal/sample"
)

func podListOf(items string) string {
	return `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[` + items + `]}`
}

func TestACompressedListOfAHighRatioDegradesItsMemberAlone(t *testing.T) {
	pad := strings.Repeat("a", 3<<20) // less than an answer may have
	f, _ := hostile(t, sample.Zipped(podListOf(`{"metadata":{"name":"a","annotations":{"b":"`+pad+`"}}}`)), quietWatch, func(o *Options) { o.AnswerBytes = 64 << 20 })
	f.suffers("TooLarge")
	f.g.Expect(f.member("bad").Status().Message).To(ContainSubstring("v1 Pod (TooLarge)"))
}

func TestPagesAreMadeSmallerWhereObjectsAreLarge(t *testing.T) {
	var limits sync.Map
	f, _ := hostile(t, func(w http.ResponseWriter, r *http.Request) {
		limit, _ := strconv.Atoi(r.URL.Query().Get("limit"))
		limits.Store(limit, true)
		w.Header().Set("Content-Type", "application/json")
		pods := make([]string, limit)
		for i := range pods {
			pods[i] = fmt.Sprintf(`{"metadata":{"name":"p%d","namespace":"d","annotations":{"a":"%s"}}}`, i, strings.Repeat("x", 15<<10))
		}
		_, _ = io.WriteString(w, podListOf(strings.Join(pods, ",")))
	}, quietWatch)
	f.awaitReady("bad")
	for _, limit := range []int{500, 50, 5} {
		_, asked := limits.Load(limit)
		f.g.Expect(asked).To(Equal(limit != 5), "%d", limit)
	}
	member, _ := f.Member("bad")
	f.g.Expect(member.GetClient().Get(t.Context(), client.ObjectKey{Namespace: "d", Name: "p49"}, &corev1.Pod{})).To(Succeed())
}

// labelledPods answers a list with pods whose caches take so many bytes each at least.
func labelledPods(count, bytes int) http.HandlerFunc {
	pods := make([]string, count)
	for i := range pods {
		pods[i] = fmt.Sprintf(`{"metadata":{"name":"p%d","namespace":"d","labels":{"a":"%s"}}}`, i, strings.Repeat("x", bytes))
	}
	list := podListOf(strings.Join(pods, ","))
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, list)
	}
}

func TestOneKindMayNotTakeWhatAllKindsMay(t *testing.T) {
	f, _ := hostile(t, labelledPods(60, 10<<10), quietWatch, func(o *Options) { o.KindBytes = 512 << 10 })
	f.suffers("TooLarge")
	f.g.Expect(f.member("bad").Has(&corev1.ConfigMap{})).To(BeTrue(), "its other kinds stay")
	f.g.Eventually(f.member("bad").warmer.budget.Used.Load).Should(BeNumerically("<", 512<<10), "what the kind held is given back")
}

func TestTheLargestMemberGivesWayWhereAllTakeTooMuch(t *testing.T) {
	f, _ := hostile(t, labelledPods(60, 10<<10), quietWatch, func(o *Options) { o.FleetCacheBytes = 512 << 10 })
	f.suffers("TooLarge")
	f.g.Expect(f.member("bad").Has(&corev1.ConfigMap{})).To(BeTrue(), "its other kinds stay")
}

// These pods are small, so that nothing but their number is too large.
func TestAKindOfMoreObjectsThanAllowedDegradesItsMemberAlone(t *testing.T) {
	f, _ := hostile(t, labelledPods(11, 0), quietWatch, func(o *Options) { o.CacheObjects = 10 })
	f.suffers("TooLarge")
}

func TestAStandbyIsProtectedAsTheOwnerIs(t *testing.T) {
	f, _ := hostile(t, emptyPodList, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		for i := 0; r.Context().Err() == nil; i++ {
			if _, err := fmt.Fprintf(w, `{"type":"ADDED","object":{"kind":"Pod","apiVersion":"v1","metadata":{"name":"p%d","namespace":"d","resourceVersion":"%d"}}}`+"\n", i, i+2); err != nil {
				return
			}
		}
	}, func(o *Options) {
		fence := &switchableFence{}
		fence.set("bad", true)
		fence.set("good", true)
		o.Fence = fence // another replica owns both
	})
	f.suffers("TooLarge")
}

func TestAnObjectWhoseNameNoAPIServerWouldTakeIsNotCached(t *testing.T) {
	for what, metadata := range map[string]string{
		"a long name":        `"name":"` + strings.Repeat("a", intake.MaxName+1) + `"`,
		"two lines":          `"name":"a\nlevel=ERROR"`,
		"a terminal's codes": `"name":"a\u001b[2J"`,
		"a long namespace":   `"name":"a","namespace":"` + strings.Repeat("a", intake.MaxNamespace+1) + `"`,
		"a long UID":         `"name":"a","uid":"` + strings.Repeat("a", intake.MaxName+1) + `"`,
	} {
		t.Run(what, func(t *testing.T) {
			f, _ := hostile(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				_, _ = io.WriteString(w, podListOf(`{"metadata":{`+metadata+`}}`))
			}, quietWatch)
			f.suffers("Unreadable")
		})
	}
}
