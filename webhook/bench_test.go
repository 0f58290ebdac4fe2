package webhook

import (
	"bytes"
	"io"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/plimsoll-dev/plimsoll/internal/tlstest"
)

// BenchmarkAdmission is calls over TLS and kept connections, from 8 callers that share this machine with the server. It
// reports calls per second and the 99th percentile.
func BenchmarkAdmission(b *testing.B) {
	const callers = 8
	h := newHub(b, toSpot)
	ca := newCA(b)
	server := listen(b, ca, h)
	url, _ := start(b, server)
	body := recordedReview(b)
	transport := &http.Transport{TLSClientConfig: tlstest.Trusting(ca.Bundle()), MaxIdleConnsPerHost: callers, MaxConnsPerHost: callers}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport}
	took := make([][]time.Duration, callers)
	b.ReportAllocs()
	b.ResetTimer()
	var done sync.WaitGroup
	for caller := range callers {
		done.Go(func() {
			for range b.N / callers {
				began := time.Now()
				response, err := client.Post(url+h.path(), "application/json", bytes.NewReader(body))
				if err != nil {
					b.Error(err)
					return
				}
				_, _ = io.Copy(io.Discard, response.Body)
				_ = response.Body.Close()
				took[caller] = append(took[caller], time.Since(began))
			}
		})
	}
	done.Wait()
	b.StopTimer()
	all := slices.Sorted(slices.Values(slices.Concat(took...)))
	if len(all) > 0 {
		b.ReportMetric(float64(len(all))/b.Elapsed().Seconds(), "calls/s")
		b.ReportMetric(float64(all[len(all)*99/100].Microseconds())/1000, "p99-ms")
	}
}
