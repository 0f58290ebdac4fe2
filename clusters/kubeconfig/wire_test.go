package kubeconfig

import (
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/plimsoll-dev/plimsoll/clusters/internal/sample"
)

// The headers of an answer are outside of all budgets for what a member sends.
func TestAnAnswerWithLargeHeadersIsNotRead(t *testing.T) {
	for _, version := range []int{1, 2} {
		t.Run(fmt.Sprintf("HTTP/%d", version), func(t *testing.T) {
			g := NewWithT(t)
			server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.ProtoMajor != version {
					t.Errorf("it asked by HTTP/%d", r.ProtoMajor)
				}
				if r.URL.Path == "/large" {
					for i := range 2 * maxHeader / 1000 {
						w.Header().Set(fmt.Sprintf("Large-%d", i), strings.Repeat("a", 1000))
					}
				}
			}))
			server.EnableHTTP2 = version == 2
			server.StartTLS()
			defer server.Close()
			authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
			vetted, err := Vet("a", sample.KubeconfigOf("server: "+server.URL+"\ncertificate-authority-data: "+base64.StdEncoding.EncodeToString(authority), sample.GoodUser),
				Rules{AllowedNetworks: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})
			g.Expect(err).NotTo(HaveOccurred())
			way, closeIdle, err := vetted.Transport(0)
			g.Expect(err).NotTo(HaveOccurred())
			defer closeIdle()
			ask := func(path string) error {
				req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, vetted.Host()+path, nil)
				g.Expect(err).NotTo(HaveOccurred())
				resp, err := way.RoundTrip(req)
				if err == nil {
					_ = resp.Body.Close()
				}
				return err
			}
			g.Expect(ask("/small")).To(Succeed())
			g.Expect(ask("/large")).NotTo(Succeed())
		})
	}
}
