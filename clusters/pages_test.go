package clusters

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/clusters/internal/intake"
	"github.com/plimsoll-dev/plimsoll/clusters/paging"
)

// pageSize is how many objects a page of a live list has.
const pageSize = 500

// crowd serves a list of so many pods, in pages if it is asked to.
type crowd struct {
	pods    int
	padding int  // bytes of each pod beside its name
	expires int  // how many continue tokens are refused
	goesOn  bool // whether a refusal names a token to continue with
	lists   int
	largest int64
}

func (c *crowd) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.lists++
	query := r.URL.Query()
	limit, _ := strconv.ParseInt(query.Get("limit"), 10, 64)
	from, _ := strconv.Atoi(query.Get("continue"))
	if query.Get("continue") != "" && c.expires > 0 {
		c.expires--
		status := metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure, Code: http.StatusGone, Reason: metav1.StatusReasonExpired}
		if c.goesOn {
			status.Continue = query.Get("continue")
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusGone)
		_ = json.NewEncoder(w).Encode(status)
		return
	}
	if limit == 0 {
		limit = int64(c.pods)
	}
	c.largest = max(c.largest, limit)
	list := corev1.PodList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}, ListMeta: metav1.ListMeta{ResourceVersion: "10"}}
	for i := from; i < min(from+int(limit), c.pods); i++ {
		pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: fmt.Sprintf("web-%d", i), Annotations: map[string]string{"note": strings.Repeat("x", c.padding)}}}
		if from == 0 {
			pod.Labels = map[string]string{"page": "first"}
		}
		list.Items = append(list.Items, pod)
	}
	if next := from + int(limit); next < c.pods {
		list.Continue = strconv.Itoa(next)
	}
	write(w, list)
}

// crowded is a member whose lists take a time on a busy machine, and whose answers may have 2 MiB.
func crowded(t *testing.T) (*fleet, *fakeAPI, *Member) {
	t.Helper()
	f, api := newFleet(t, func(o *Options) { o.RequestTimeout, o.AnswerBytes = time.Minute, 2<<20 }), newFakeAPI(t, "cluster-a")
	f.secrets.put("a", api.kubeconfig())
	return f, api, f.awaitReady("a")
}

func TestALiveListIsReadInPagesHoweverManyObjectsItHas(t *testing.T) {
	t.Parallel()
	f, api, member := crowded(t)
	for name, c := range map[string]crowd{
		"more objects than one answer may have":  {pods: 60_000},
		"it expires, and goes on":                {pods: 3000, expires: 3, goesOn: true},
		"it expires, and begins again":           {pods: 3000, expires: 2},
		"pages are larger than an answer may be": {pods: 600, padding: 8 << 10},
	} {
		api.answer("/api/v1/namespaces/shop/pods", c.ServeHTTP)
		seen, first := map[string]int{}, 0
		var page corev1.PodList
		err := paging.Pages(context.Background(), member.Live(), &page, func() bool {
			for i := range page.Items {
				seen[page.Items[i].Name]++
				if page.Items[i].Labels["page"] == "first" {
					first++
				}
			}
			return true
		}, func() { clear(seen); first = 0 }, client.InNamespace("shop"))
		f.g.Expect(err).NotTo(HaveOccurred(), name)
		f.g.Expect(seen).To(HaveLen(c.pods), name)
		f.g.Expect(seen).To(HaveEach(1), name)
		f.g.Expect(first).To(BeNumerically("<=", pageSize), "%s: pods of later pages have labels of the first", name)
		f.g.Expect(c.largest).To(BeNumerically("<=", pageSize), name)
	}

	whole := crowd{pods: 60_000}
	api.answer("/api/v1/namespaces/shop/pods", whole.ServeHTTP)
	err := member.Live().List(context.Background(), &corev1.PodList{}, client.InNamespace("shop"))
	f.g.Expect(errors.Is(err, intake.ErrTooLarge)).To(BeTrue(), "a list of all at once: %v", err)
}

func TestALiveListEnds(t *testing.T) {
	t.Parallel()
	f, api, member := crowded(t)
	c := crowd{pods: 3000, expires: 100}
	api.answer("/api/v1/namespaces/shop/pods", c.ServeHTTP)
	var page corev1.PodList
	keep := func() bool { return true }
	err := paging.Pages(context.Background(), member.Live(), &page, keep, func() {}, client.InNamespace("shop"))
	f.g.Expect(apierrors.IsResourceExpired(err)).To(BeTrue(), "it expires for ever: %v", err)

	c = crowd{pods: 1 << 30, expires: 0}
	pages := 0
	err = paging.Pages(context.Background(), member.Live(), &page, func() bool { pages++; return pages < 3 }, func() {}, client.InNamespace("shop"))
	f.g.Expect(err).NotTo(HaveOccurred())
	f.g.Expect(pages).To(Equal(3), "who has enough reads no more")

	endless := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		write(w, corev1.PodList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}, ListMeta: metav1.ListMeta{Continue: "more"}})
	})
	api.answer("/api/v1/namespaces/shop/pods", endless)
	f.g.Expect(paging.Pages(context.Background(), member.Live(), &page, keep, func() {}, client.InNamespace("shop"))).To(MatchError(ContainSubstring("pages")))
}
