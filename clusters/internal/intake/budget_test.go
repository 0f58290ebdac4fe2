package intake

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/scheme"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/plimsoll-dev/plimsoll/clusters/quantities"
)

func TestTheCachesOfAMemberAreBoundedTogether(t *testing.T) {
	g := NewWithT(t)
	of := NewMemberBudget(nil, 100, 60, 10)
	pods, nodes := NewKindBudget(of), NewKindBudget(of)
	g.Expect(pods.add(60)).To(Succeed())
	g.Expect(nodes.add(40)).To(Succeed())
	g.Expect(nodes.add(1)).To(MatchError(ErrTooLarge), "though a kind may have more")
	g.Expect(nodes.add(-11)).To(Succeed())
	g.Expect(pods.add(1)).To(MatchError(ErrTooLarge), "though the member may have more")
	g.Expect(pods.add(-61)).To(Succeed())
	g.Expect(of.Used.Load()).To(BeEquivalentTo(30))
}

func TestOnlySoManyListsOfAMemberAreReadAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		of := NewMemberBudget(nil, 1<<20, 1<<20, 10)
		goOn := make(chan struct{})
		var begun atomic.Int32
		var lists sync.WaitGroup
		for range 2 * listsAtOnce {
			meter := NewMeter(&toolscache.ListWatch{ListWithContextFunc: func(context.Context, metav1.ListOptions) (runtime.Object, error) {
				begun.Add(1)
				<-goOn
				return &corev1.PodList{}, nil
			}}, NewKindBudget(of), func(object any) (any, error) { return object, nil })
			lists.Go(func() {
				if _, err := meter.ListWithContext(t.Context(), metav1.ListOptions{}); err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		g.Expect(begun.Load()).To(BeEquivalentTo(listsAtOnce), "the others wait")
		close(goOn)
		lists.Wait()
		g.Expect(begun.Load()).To(BeEquivalentTo(2*listsAtOnce), "and have their turn")
	})
}

// A client decodes a page when it has read it and closed its body.
func TestAPageHasItsTurnUntilItIsDecoded(t *testing.T) {
	g := NewWithT(t)
	decodes := NewDecodes(1)
	way := Intake{Member: "a", Paths: quantities.NewPaths(scheme.Scheme), Decodes: decodes}.Of(10, 1<<20).Guard(
		answering(http.StatusOK, "application/json", `{"items":[],"other":"`+strings.Repeat("a", 2*smallPart)+`"}`))
	meter := NewMeter(&toolscache.ListWatch{ListWithContextFunc: func(ctx context.Context, _ metav1.ListOptions) (runtime.Object, error) {
		resp, err := way.RoundTrip(httptest.NewRequestWithContext(ctx, http.MethodGet, "/", nil))
		g.Expect(err).NotTo(HaveOccurred())
		_, err = io.Copy(io.Discard, resp.Body)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(resp.Body.Close()).To(Succeed())
		g.Expect(decodes).To(HaveLen(1), "it is decoded now")
		return &corev1.PodList{}, nil
	}}, NewKindBudget(NewMemberBudget(nil, 1<<20, 1<<20, 10)), func(object any) (any, error) { return object, nil })
	_, err := meter.ListWithContext(t.Context(), metav1.ListOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(decodes).To(BeEmpty())
}

func TestAListThatRepeatsItselfOrItsEmptyPagesIsEnded(t *testing.T) {
	for what, c := range map[string]struct {
		names []string
		pages int // that are read
	}{
		"pages of the same objects": {[]string{"a", "b"}, 2},
		"pages of nothing":          {nil, maxShort + 1},
	} {
		t.Run(what, func(t *testing.T) {
			g := NewWithT(t)
			read := 0
			list := func(context.Context, metav1.ListOptions) (runtime.Object, error) {
				read++
				pods := &corev1.PodList{ListMeta: metav1.ListMeta{Continue: "more"}}
				for _, name := range c.names {
					pods.Items = append(pods.Items, corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}})
				}
				return pods, nil
			}
			kind := NewKindBudget(NewMemberBudget(nil, 1<<20, 1<<20, 1000))
			meter := NewMeter(&toolscache.ListWatch{ListWithContextFunc: list}, kind, func(object any) (any, error) { return object, nil })
			_, err := meter.ListWithContext(t.Context(), metav1.ListOptions{Limit: 500})
			for err == nil && read < 2*maxShort {
				_, err = meter.ListWithContext(t.Context(), metav1.ListOptions{Limit: 500, Continue: "more"})
			}
			g.Expect(err).To(MatchError(ErrUnreadable))
			g.Expect(read).To(Equal(c.pages))
			g.Expect(<-kind.Exceeded).To(MatchError(ErrUnreadable), "the kind's cache is given up")

			_, err = meter.ListWithContext(t.Context(), metav1.ListOptions{Limit: 500})
			g.Expect(err).NotTo(HaveOccurred(), "another list begins anew")
		})
	}
}

// A watch sends back, in its URL, the version of the list or of the last event before it, and a list the token of its page.
func TestAVersionThatNoAPIServerWouldSendEndsItsCache(t *testing.T) {
	long := strings.Repeat("%", MaxToken+1)
	pod := func(version string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "a", ResourceVersion: version}}
	}
	for what, list := range map[string]*corev1.PodList{
		"the version of a list":           {ListMeta: metav1.ListMeta{ResourceVersion: long}},
		"a token to continue":             {ListMeta: metav1.ListMeta{Continue: long}},
		"the version of an object listed": {Items: []corev1.Pod{*pod(long)}},
	} {
		t.Run(what, func(t *testing.T) {
			g := NewWithT(t)
			kind := NewKindBudget(NewMemberBudget(nil, 1<<20, 1<<20, 10))
			meter := NewMeter(&toolscache.ListWatch{ListWithContextFunc: func(context.Context, metav1.ListOptions) (runtime.Object, error) {
				return list, nil
			}}, kind, func(object any) (any, error) { return object, nil })
			_, err := meter.ListWithContext(t.Context(), metav1.ListOptions{})
			g.Expect(err).To(MatchError(ErrUnreadable))
			g.Expect(kind.Exceeded).To(Receive(MatchError(ErrUnreadable)))
		})
	}
	for _, event := range []watch.EventType{watch.Added, watch.Modified, watch.Deleted, watch.Bookmark} {
		t.Run("the version of an event: "+string(event), func(t *testing.T) {
			g := NewWithT(t)
			kind := NewKindBudget(NewMemberBudget(nil, 1<<20, 1<<20, 10))
			meter := NewMeter(&toolscache.ListWatch{}, kind, func(object any) (any, error) { return object, nil })
			_, passed := meter.event(watch.Event{Type: event, Object: pod(long[1:])})
			g.Expect(passed).To(BeTrue(), "as long as it may be")
			_, passed = meter.event(watch.Event{Type: event, Object: pod(long)})
			g.Expect(passed).To(BeFalse())
			g.Expect(kind.Exceeded).To(Receive(MatchError(ErrUnreadable)))
		})
	}
}

func TestAnswersOfDiscoveryAreCountedForTheirTypes(t *testing.T) {
	const resources = 1000
	text := `{"resources":[` + strings.Repeat(`{"name":"a","kind":"A","verbs":["get","list"]},`, resources) + `{}]}`
	way := Intake{Member: "a", Paths: quantities.NewPaths(scheme.Scheme), Decodes: NewDecodes(1)}.Of(10, 128<<10)
	for _, c := range []struct {
		way  Intake
		read bool
	}{{way, false}, {way.Typed(), true}} {
		g := NewWithT(t)
		resp, err := c.way.Guard(answering(http.StatusOK, "application/json", text)).RoundTrip(httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/apis/a/v1", nil))
		g.Expect(err).NotTo(HaveOccurred())
		_, err = io.ReadAll(resp.Body)
		g.Expect(err == nil).To(Equal(c.read), "%v", err)
		g.Expect(resp.Body.Close()).To(Succeed())
	}
}

func TestAnEventAboutAnObjectOfTheListIsNoRepetition(t *testing.T) {
	g := NewWithT(t)
	meter := NewMeter(&toolscache.ListWatch{}, NewKindBudget(NewMemberBudget(nil, 1<<20, 1<<20, 1000)), func(object any) (any, error) { return object, nil })
	meter.begin()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "a"}}
	for range 2 {
		_, err := meter.take(pod, false)
		g.Expect(err).NotTo(HaveOccurred())
	}
}
