package caching

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/plimsoll-dev/plimsoll/clusters/internal/intake"
	"github.com/plimsoll-dev/plimsoll/clusters/quantities"
)

// A client decodes an answer when it has read it and closed its body.
func TestALargeAnswerHasItsTurnUntilTheCallHasDecodedIt(t *testing.T) {
	ctx, pod, pods := t.Context(), &corev1.Pod{}, &corev1.PodList{}
	untyped, untypedList := &unstructured.Unstructured{}, &unstructured.UnstructuredList{}
	key, patch, apply := client.ObjectKey{Name: "a"}, client.RawPatch("", nil), corev1ac.Pod("a", "b")
	for name, call := range map[string]func(live client.Reader, c client.Client) error{
		"live get":           func(live client.Reader, _ client.Client) error { return live.Get(ctx, key, pod) },
		"live list":          func(live client.Reader, _ client.Client) error { return live.List(ctx, pods) },
		"get":                func(_ client.Reader, c client.Client) error { return c.Get(ctx, key, untyped) },
		"list":               func(_ client.Reader, c client.Client) error { return c.List(ctx, untypedList) },
		"create":             func(_ client.Reader, c client.Client) error { return c.Create(ctx, pod) },
		"update":             func(_ client.Reader, c client.Client) error { return c.Update(ctx, pod) },
		"patch":              func(_ client.Reader, c client.Client) error { return c.Patch(ctx, pod, patch) },
		"apply":              func(_ client.Reader, c client.Client) error { return c.Apply(ctx, apply) },
		"update of a status": func(_ client.Reader, c client.Client) error { return c.Status().Update(ctx, pod) },
		"patch of a status":  func(_ client.Reader, c client.Client) error { return c.Status().Patch(ctx, pod, patch) },
		"apply of a status":  func(_ client.Reader, c client.Client) error { return c.Status().Apply(ctx, apply) },
		"subresource":        func(_ client.Reader, c client.Client) error { return c.SubResource("scale").Get(ctx, pod, pod) },
		"new subresource":    func(_ client.Reader, c client.Client) error { return c.SubResource("binding").Create(ctx, pod, pod) },
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			m := newAnswering()
			inner := m.client(g)
			g.Expect(call(NewLiveReader(inner), NewClient(inner, "a", nil))).To(Succeed())
			g.Expect(m.calls).To(Equal(1))
			g.Expect(m.decodes).To(BeEmpty(), "the turn is over")
		})
	}
}

// Reads from a cache are too many for a context of their own.
func TestReadsFromACacheTakeNoTurn(t *testing.T) {
	g := NewWithT(t)
	ctx := t.Context()
	same := func(is context.Context) error {
		g.Expect(is).To(BeIdenticalTo(ctx))
		return nil
	}
	c := NewClient(interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{
		Get: func(ctx context.Context, _ client.WithWatch, _ client.ObjectKey, _ client.Object, _ ...client.GetOption) error {
			return same(ctx)
		},
		List: func(ctx context.Context, _ client.WithWatch, _ client.ObjectList, _ ...client.ListOption) error {
			return same(ctx)
		},
	}), "a", nil)
	g.Expect(c.Get(ctx, client.ObjectKey{Name: "a"}, &corev1.Pod{})).To(Succeed())
	g.Expect(c.List(ctx, &corev1.PodList{})).To(Succeed())
}

// answering is a member that answers each call of a client with something large.
type answering struct {
	decodes intake.Decodes
	way     http.RoundTripper
	calls   int
}

func newAnswering() *answering {
	m := &answering{decodes: intake.NewDecodes(1)}
	took := intake.Intake{Member: "a", Paths: quantities.NewPaths(scheme.Scheme), Decodes: m.decodes}.Of(10, 1<<20)
	m.way = took.Guard(intake.RoundTripper(func(*http.Request) (*http.Response, error) {
		text := `{"x":"` + strings.Repeat("a", 512<<10) + `"}`
		return &http.Response{
			StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, ContentLength: -1, Body: io.NopCloser(strings.NewReader(text)),
		}, nil
	}))
	return m
}

// client reads an answer for each call, and then expects to have the turn to decode it.
func (m *answering) client(g Gomega) client.Client {
	call := func(ctx context.Context) error {
		m.calls++
		for range 2 { // it may have to ask again
			req, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://a/large", nil)
			g.Expect(err).NotTo(HaveOccurred())
			resp, err := m.way.RoundTrip(req)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(m.decodes).To(BeEmpty(), "nothing large has been read")
			_, err = io.Copy(io.Discard, resp.Body)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(resp.Body.Close()).To(Succeed())
			g.Expect(m.decodes).To(HaveLen(1), "it is decoded now")
		}
		return nil
	}
	return interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{
		Get: func(ctx context.Context, _ client.WithWatch, _ client.ObjectKey, _ client.Object, _ ...client.GetOption) error {
			return call(ctx)
		},
		List: func(ctx context.Context, _ client.WithWatch, _ client.ObjectList, _ ...client.ListOption) error {
			return call(ctx)
		},
		Create: func(ctx context.Context, _ client.WithWatch, _ client.Object, _ ...client.CreateOption) error {
			return call(ctx)
		},
		Update: func(ctx context.Context, _ client.WithWatch, _ client.Object, _ ...client.UpdateOption) error {
			return call(ctx)
		},
		Patch: func(ctx context.Context, _ client.WithWatch, _ client.Object, _ client.Patch, _ ...client.PatchOption) error {
			return call(ctx)
		},
		Apply: func(ctx context.Context, _ client.WithWatch, _ runtime.ApplyConfiguration, _ ...client.ApplyOption) error {
			return call(ctx)
		},
		SubResourceGet: func(ctx context.Context, _ client.Client, _ string, _, _ client.Object, _ ...client.SubResourceGetOption) error {
			return call(ctx)
		},
		SubResourceCreate: func(ctx context.Context, _ client.Client, _ string, _, _ client.Object, _ ...client.SubResourceCreateOption) error {
			return call(ctx)
		},
		SubResourceUpdate: func(ctx context.Context, _ client.Client, _ string, _ client.Object, _ ...client.SubResourceUpdateOption) error {
			return call(ctx)
		},
		SubResourcePatch: func(ctx context.Context, _ client.Client, _ string, _ client.Object, _ client.Patch, _ ...client.SubResourcePatchOption) error {
			return call(ctx)
		},
		SubResourceApply: func(ctx context.Context, _ client.Client, _ string, _ runtime.ApplyConfiguration, _ ...client.SubResourceApplyOption) error {
			return call(ctx)
		},
	})
}

// Caches refuse the same.
func TestALiveAnswerThatNoAPIServerWouldHaveSentIsRefused(t *testing.T) {
	long := strings.Repeat("a", 1<<20)
	for name, test := range map[string]struct {
		object  metav1.ObjectMeta
		list    metav1.ListMeta
		refused bool
	}{
		"an honest one":                {object: metav1.ObjectMeta{Namespace: "a", Name: "a", ResourceVersion: "1"}, list: metav1.ListMeta{ResourceVersion: "2"}},
		"a name":                       {object: metav1.ObjectMeta{Name: long}, refused: true},
		"a name of two lines":          {object: metav1.ObjectMeta{Name: "a\nb"}, refused: true},
		"an object's resource version": {object: metav1.ObjectMeta{ResourceVersion: long}, refused: true},
		"a list's resource version":    {list: metav1.ListMeta{ResourceVersion: long}, refused: true},
		"a list's token to continue":   {list: metav1.ListMeta{Continue: long}, refused: true},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			answer := func(obj client.Object) error {
				obj.SetName(test.object.Name)
				obj.SetResourceVersion(test.object.ResourceVersion)
				return nil
			}
			inner := interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{
				Get: func(_ context.Context, _ client.WithWatch, _ client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
					return answer(obj)
				},
				List: func(_ context.Context, _ client.WithWatch, list client.ObjectList, _ ...client.ListOption) error {
					list.(*corev1.PodList).ListMeta, list.(*corev1.PodList).Items = test.list, []corev1.Pod{{}, {ObjectMeta: test.object}}
					return nil
				},
				SubResourceGet: func(_ context.Context, _ client.Client, _ string, _, sub client.Object, _ ...client.SubResourceGetOption) error {
					return answer(sub)
				},
			})
			live, ctx := NewLiveReader(inner), t.Context()
			errs := []error{live.List(ctx, &corev1.PodList{})}
			if test.list == (metav1.ListMeta{}) || !test.refused {
				errs = append(errs, live.Get(ctx, client.ObjectKey{Name: "a"}, &corev1.Pod{}),
					NewClient(inner, "a", nil).SubResource("scale").Get(ctx, &corev1.Pod{}, &corev1.Pod{}))
			}
			for _, err := range errs {
				if test.refused {
					g.Expect(err).To(MatchError(intake.ErrUnreadable))
				} else {
					g.Expect(err).NotTo(HaveOccurred())
				}
			}
		})
	}
}
