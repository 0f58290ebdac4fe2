package hub

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/plimsoll-dev/plimsoll/internal/shares"
)

// check returns why the replica is not ready, or nil.
type check struct {
	name string
	test func() error
}

// probeHandler answers /healthz and /readyz. Neither depends on any member, nor on who owns them: a standby is ready, and a
// hub that stopped for one bad cluster would stop for all.
func probeHandler(checks []check) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		var failed []string
		for _, c := range checks {
			if err := c.test(); err != nil {
				failed = append(failed, c.name+": "+err.Error())
			}
		}
		if len(failed) > 0 {
			http.Error(w, strings.Join(failed, "\n"), http.StatusServiceUnavailable)
			return
		}
		_, _ = fmt.Fprintln(w, "ok")
	})
	return mux
}

// plainCalls are how many calls a plain server serves at a time.
var plainCalls = shares.Limits{OfConnection: 16, InFlight: 512}

// plainServer serves what is small and quickly answered: probes and metrics.
func plainServer(handler http.Handler) *http.Server {
	server := &http.Server{
		Handler: handler, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second,
		WriteTimeout: 30 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 16 << 10,
	}
	shares.Bound(server, plainCalls, nil)
	return server
}
