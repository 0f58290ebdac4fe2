package bare

import (
	"context"
	"encoding/gob"
	"encoding/json"
	"encoding/pem"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"

	"github.com/plimsoll-dev/plimsoll/test/bench/internal/partner"
)

// HandlerCommand is the argument with which the benchmark is the handler to compare with: see [Serve].
const HandlerCommand = "serve-bare"

// A Handler is an admission webhook in a process of its own.
type Handler struct {
	URL     *url.URL
	Bundle  []byte // its certificate authority, in PEM
	process *partner.Partner
}

// A handlerReport says where the handler serves.
type handlerReport struct {
	Address string
	Bundle  []byte
}

// StartHandler starts a handler, which serves until it is ended.
func StartHandler(ctx context.Context) (*Handler, error) {
	process, err := partner.Start(ctx, HandlerCommand, struct{}{})
	if err != nil {
		return nil, err
	}
	var serves handlerReport
	if err := process.Next(&serves); err != nil {
		process.End()
		return nil, err
	}
	return &Handler{URL: &url.URL{Scheme: "https", Host: serves.Address, Path: "/"}, Bundle: serves.Bundle, process: process}, nil
}

// End ends the process.
func (h *Handler) End() { h.process.End() }

// Serve is the least that an admission webhook can be: net/http over TLS, the body read, scanned by encoding/json for
// the request's UID, and answered with a patch that never changes. It reports where, and runs until it is killed.
func Serve(_ io.Reader, out io.Writer) error {
	server := httptest.NewUnstartedServer(http.HandlerFunc(answer))
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	if err := gob.NewEncoder(out).Encode(handlerReport{server.Listener.Addr().String(), certificate}); err != nil {
		return err
	}
	select {}
}

// patch is as long as a real one, in base64.
var patch = strings.Repeat("W3sib3AiOiJh", 35)

func answer(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	var review struct {
		Request struct {
			UID string `json:"uid"`
		} `json:"request"`
	}
	if err := json.Unmarshal(body, &review); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","response":{"uid":"`+review.Request.UID+
		`","allowed":true,"patchType":"JSONPatch","patch":"`+patch+`"}}`) // who called may be gone
}
