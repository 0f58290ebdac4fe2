package webhook

import (
	"net/http"

	"github.com/plimsoll-dev/plimsoll/internal/shares"
)

// WithCertificate lets calls through that come with a client certificate, which the server has verified; others get 401. Calls of the
// open patterns need none: API servers never show one for conversions, and what a conversion answers is in its question.
func WithCertificate(next http.Handler, metrics *Metrics, open ...string) http.Handler {
	all := http.NewServeMux()
	for _, pattern := range open {
		all.Handle(pattern, next)
	}
	all.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		if r.TLS == nil || len(r.TLS.VerifiedChains) == 0 {
			metrics.rejected.WithLabelValues("no_certificate").Inc()
			shares.Refused(shares.Caller(r.Context()))
			http.Error(w, "the call has no client certificate, which webhook.clientCA requires", http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r)
	})
	return all
}
