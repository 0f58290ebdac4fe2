package clusters

import (
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	. "github.com/onsi/gomega"
)

// A client of Kubernetes reads the whole body of a refusal, which for a watch has neither a time nor a frame of its own.
func TestTheRefusalOfAWatchIsReadAsAnAnswerIs(t *testing.T) {
	const sent = 64 << 20 // of one body
	large := `{"kind":"Status","message":"` + strings.Repeat("a", 32<<10) + `"}` + "\n"
	for what, c := range map[string]struct {
		media, part string
		status      int
	}{
		"text":         {"text/plain", strings.Repeat("a", 64<<10), http.StatusForbidden},
		"many objects": {"application/json", large, http.StatusForbidden},
		"protobuf":     {"application/vnd.kubernetes.protobuf", strings.Repeat("\x00\x00\x00\x02\x08\x01", 8<<10), http.StatusGone},
		"no refusal":   {"application/json", large, http.StatusCreated},
	} {
		t.Run(what, func(t *testing.T) {
			var ended, whole atomic.Int64
			f, _ := hostile(t, emptyPodList, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", c.media)
				w.WriteHeader(c.status)
				for written := 0; written < sent; written += len(c.part) {
					if _, err := io.WriteString(w, c.part); err != nil {
						ended.Add(1)
						return
					}
				}
				whole.Add(1)
			})
			f.g.Eventually(func() int64 { return ended.Load() + whole.Load() }).Should(BeNumerically(">=", 2), "watches are tried again")
			f.g.Expect(whole.Load()).To(BeZero(), "bodies of %d bytes were read to their ends", sent)
			f.g.Expect(f.state("good")()).To(Equal("Ready/Ready"))
		})
	}
}

// A client of Kubernetes does not close what it cannot decode: each such watch would be open, with what came of it in memory, until
// its time is over.
func TestAWatchThatNobodyCanDecodeIsClosed(t *testing.T) {
	var begun, open atomic.Int64
	f, _ := hostile(t, emptyPodList, func(w http.ResponseWriter, r *http.Request) {
		begun.Add(1)
		open.Add(1)
		defer open.Add(-1)
		w.Header().Set("Content-Type", "text/html")
		_, _ = io.WriteString(w, strings.Repeat("a", 64<<10))
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	f.g.Eventually(begun.Load).Should(BeNumerically(">=", 4), "watches are tried again")
	f.g.Eventually(open.Load).Should(BeNumerically("<=", 1))
	f.g.Expect(f.state("good")()).To(Equal("Ready/Ready"))
}
