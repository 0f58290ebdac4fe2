package clusters

import (
	"compress/gzip"
	"encoding/binary"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/clusters/internal/intake"
)

// hostile is a member that answers questions about pods as it likes, beside one that is well.
func hostile(t *testing.T, list, watch http.HandlerFunc, edit ...func(*Options)) (*fleet, *fakeAPI) {
	t.Helper()
	f := newFleet(t, append([]func(*Options){func(o *Options) {
		o.AnswerBytes, o.EventBytes, o.CacheBytes, o.CacheObjects = 1<<20, 64<<10, 4<<20, 1000
		o.WarmTimeout, o.RequestTimeout = time.Minute, time.Minute // answers are large, and this machine may be slow
	}}, edit...)...)
	bad, good := newFakeAPI(t, "bad"), newFakeAPI(t, "good")
	good.addPod("web")
	bad.answer("/api/v1/pods", func(w http.ResponseWriter, r *http.Request) {
		switch {
		case intake.IsStream(r) && r.URL.Query().Get("sendInitialEvents") == "true":
			fail(w, http.StatusUnprocessableEntity)
		case intake.IsStream(r):
			watch(w, r)
		case r.URL.Query().Get("limit") == "1":
			write(w, map[string]any{"kind": "PodList", "apiVersion": "v1"})
		default:
			list(w, r)
		}
	})
	f.secrets.put("good", good.kubeconfig())
	f.awaitReady("good")
	f.secrets.put("bad", bad.kubeconfig())
	return f, bad
}

// suffers reports that the member is Degraded for what it sends, and that the other notices nothing.
func (f *fleet) suffers(reason string) {
	f.g.Eventually(func() string {
		status, _ := f.Status("bad")
		return string(status.State) + ": " + status.Message
	}).Should(And(HavePrefix("Degraded"), ContainSubstring("v1 Pod ("+reason+")")))
	f.g.Expect(f.state("good")()).To(Equal("Ready/Ready"))
	member, ok := f.Member("good")
	f.g.Expect(ok).To(BeTrue())
	f.g.Expect(member.GetClient().Get(f.t.Context(), client.ObjectKey{Namespace: "default", Name: "web"}, &corev1.Pod{})).To(Succeed())
}

func emptyPodList(w http.ResponseWriter, _ *http.Request) {
	write(w, map[string]any{"kind": "PodList", "apiVersion": "v1", "metadata": map[string]any{"resourceVersion": "1"}})
}

func quietWatch(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusOK)
	w.(http.Flusher).Flush()
	<-r.Context().Done()
}

func TestAListOfMoreObjectsThanAllowedDegradesItsMemberAlone(t *testing.T) {
	f, _ := hostile(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		_, _ = fmt.Fprint(z, `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[`+strings.Repeat("{},", 100_000)+`{}]}`)
		_ = z.Close()
	}, quietWatch)
	f.suffers("TooLarge")
}

func TestAListOfMoreBytesThanAllowedDegradesItsMemberAlone(t *testing.T) {
	f, _ := hostile(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		_, _ = fmt.Fprint(z, `{"kind":"PodList","x":"`+strings.Repeat("a", 8<<20)+`"}`)
		_ = z.Close()
	}, quietWatch)
	f.suffers("TooLarge")
}

func TestAListThatWouldTakeTooMuchMemoryDegradesItsMemberAlone(t *testing.T) {
	f, _ := hostile(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprint(w, `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[{"spec":{"containers":[`+strings.Repeat("{},", 200_000)+`{}]}}]}`)
	}, quietWatch)
	f.suffers("TooLarge")
}

func TestAnEventThatDoesNotEndDegradesItsMemberAlone(t *testing.T) {
	f, _ := hostile(t, emptyPodList, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprint(w, `{"type":"ADDED","object":{"kind":"Pod","apiVersion":"v1","metadata":{"name":"`)
		for r.Context().Err() == nil {
			if _, err := fmt.Fprint(w, strings.Repeat("a", 64<<10)); err != nil {
				return
			}
		}
	})
	f.suffers("TooLarge")
}

func TestAnEventThatSaysItIsTooLongIsNotReadAtAll(t *testing.T) {
	f, _ := hostile(t, emptyPodList, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/vnd.kubernetes.protobuf;stream=watch")
		_, _ = w.Write(binary.BigEndian.AppendUint32(nil, 1<<30))
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	f.suffers("TooLarge")
}

// Few bytes of an event may become many in memory, as those of a list may.
func TestAnEventThatWouldTakeTooMuchMemoryDegradesItsMemberAlone(t *testing.T) {
	f, _ := hostile(t, emptyPodList, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprint(w, `{"type":"ADDED","object":{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","namespace":"d","resourceVersion":"2"},`+
			`"spec":{"containers":[`+strings.Repeat("{},", 10_000)+`{}]}}}`+"\n") // 30 KB of 64 KiB
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	f.suffers("TooLarge")
}

func TestACompressedWatchIsRefused(t *testing.T) {
	var watches atomic.Int64
	f, _ := hostile(t, emptyPodList, func(w http.ResponseWriter, r *http.Request) {
		watches.Add(1)
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Encoding", "gzip")
		w.WriteHeader(http.StatusOK)
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	f.g.Eventually(watches.Load).Should(BeNumerically(">=", 2), "each is ended at once")
}

func TestObjectsWithoutEndDegradeTheirMemberAlone(t *testing.T) {
	for what, pad := range map[string]int{"many": 0, "large": 32 << 10} {
		t.Run(what, func(t *testing.T) {
			f, _ := hostile(t, emptyPodList, func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				for i := 1; r.Context().Err() == nil; i++ {
					_, err := fmt.Fprintf(w, `{"type":"ADDED","object":{"kind":"Pod","apiVersion":"v1","metadata":{"name":"p%d","namespace":"d","resourceVersion":"%d","labels":{"a":"%s"}}}}`+"\n",
						i, i+1, strings.Repeat("x", pad))
					if err != nil {
						return
					}
				}
			})
			f.suffers("TooLarge")
		})
	}
}

func TestWhatIsNotKubernetesIsUnreadable(t *testing.T) {
	f, _ := hostile(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/vnd.kubernetes.protobuf")
		_, _ = io.WriteString(w, "k8s\x00\x0a\xff")
	}, quietWatch)
	f.suffers("Unreadable")
}

func TestAPodOfAVerySmallQuantityCostsNothing(t *testing.T) {
	f, _ := hostile(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprint(w, `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[{"metadata":{"name":"a","namespace":"b"},`+
			`"spec":{"containers":[{"name":"a","resources":{"requests":{"cpu":"1e-2147483647"}}}]}}]}`)
	}, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprint(w, `{"type":"ADDED","object":{"kind":"Pod","apiVersion":"v1","metadata":{"name":"c","namespace":"b","resourceVersion":"2"},`+
			`"spec":{"overhead":{"cpu":1e-2147483647}}}}`)
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	f.g.Eventually(func(g Gomega) {
		member, ok := f.Member("bad")
		g.Expect(ok).To(BeTrue())
		g.Expect(member.GetClient().Get(t.Context(), client.ObjectKey{Namespace: "b", Name: "c"}, &corev1.Pod{})).To(Succeed())
		g.Expect(member.GetClient().Get(t.Context(), client.ObjectKey{Namespace: "b", Name: "a"}, &corev1.Pod{})).To(Succeed())
	}, "2m").Should(Succeed())
}

func TestWhatAKindHeldIsGivenBackWhenItIsLost(t *testing.T) {
	var healthy atomic.Bool
	f, bad := hostile(t, func(w http.ResponseWriter, r *http.Request) {
		if healthy.Load() {
			emptyPodList(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		pod := `{"metadata":{"name":"p%d","labels":{"a":"` + strings.Repeat("x", 20) + `"}}},`
		_, _ = fmt.Fprint(w, `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[`)
		for i := range 2000 {
			_, _ = fmt.Fprintf(w, pod, i)
		}
		_, _ = fmt.Fprint(w, `{}]}`)
	}, quietWatch)
	f.suffers("TooLarge")
	healthy.Store(true)
	f.awaitReady("bad")
	member, _ := f.Member("bad")
	f.g.Expect(member.warmer.budget.Used.Load()).To(BeZero())
	_ = bad
}

func TestPodsThatComeAndGoFillNothing(t *testing.T) {
	t.Parallel()
	var sent atomic.Int64
	f, _ := hostile(t, emptyPodList, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		for i := range 5000 {
			for _, what := range []string{"ADDED", "MODIFIED", "DELETED"} {
				_, _ = fmt.Fprintf(w, `{"type":"%s","object":{"kind":"Pod","apiVersion":"v1","metadata":{"name":"p%d","namespace":"d","resourceVersion":"%d"}}}`+"\n", what, i, i+2)
			}
		}
		_, _ = fmt.Fprint(w, `{"type":"ADDED","object":{"kind":"Pod","apiVersion":"v1","metadata":{"name":"last","namespace":"d","resourceVersion":"9999"}}}`)
		w.(http.Flusher).Flush()
		sent.Add(1)
		<-r.Context().Done()
	})
	f.g.Eventually(func() error {
		member, ok := f.Member("bad")
		if !ok {
			return fmt.Errorf("not there yet")
		}
		return member.GetClient().Get(t.Context(), client.ObjectKey{Namespace: "d", Name: "last"}, &corev1.Pod{})
	}, "2m").Should(Succeed())
	f.g.Expect(sent.Load()).To(Equal(int64(1)))
	f.g.Expect(f.state("bad")()).To(Equal("Ready/Ready"))
}
