package webhook

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

const (
	// ConvertPattern is where API servers send WebApps that they want in another version.
	ConvertPattern = "POST /webhook/v1/members/{member}/{token}/convert"
	// DefaultPattern is where they send WebApps to be completed.
	DefaultPattern = "POST /webhook/v1/members/{member}/{token}/webapps/default"
	// ValidatePattern is where they ask whether a WebApp may be stored.
	ValidatePattern = "POST /webhook/v1/members/{member}/{token}/webapps/validate"

	// maxConversion is the largest conversion that is read: an API server that lists sends all objects of a page at once.
	maxConversion = 16 << 20
)

// KindHandler answers what members' API servers ask about WebApps: conversions, defaults and whether one may be stored. It
// needs nothing but the question, so every replica answers, whoever owns the member.
type KindHandler struct {
	tokens   *Tokens
	review   Reviewer
	calls    *http.ServeMux
	turns    *turns
	answered *prometheus.CounterVec
	log      *slog.Logger
}

// NewKindHandler makes the handler of [ConvertPattern], [DefaultPattern] and [ValidatePattern], and registers its metric.
func NewKindHandler(tokens *Tokens, review Reviewer, registerer prometheus.Registerer, log *slog.Logger) (*KindHandler, error) {
	h := &KindHandler{tokens: tokens, review: review, calls: http.NewServeMux(), turns: newTurns(), log: log}
	h.answered = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "plimsoll_webapp_calls_total",
		Help: "Calls about WebApps by what was asked (convert, default, validate) and the outcome (ok, refused, failed, rejected).",
	}, []string{"call", "outcome"})
	if err := registerer.Register(h.answered); err != nil {
		return nil, fmt.Errorf("metrics of WebApp calls: %w", err)
	}
	h.calls.HandleFunc(ConvertPattern, h.serve("convert", ForConversions, maxConversion, convertReview))
	h.calls.HandleFunc(DefaultPattern, h.serve("default", ForWebApps, maxBody, h.complete))
	h.calls.HandleFunc(ValidatePattern, h.serve("validate", ForWebApps, maxBody, h.validate))
	return h, nil
}

// ServeHTTP answers one call. An unknown member and a wrong token get the same 404.
func (h *KindHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) { h.calls.ServeHTTP(w, r) }

// Beside serves what is asked about WebApps, and leaves everything else to another handler.
func (h *KindHandler) Beside(other http.Handler) http.Handler {
	all := http.NewServeMux()
	for _, pattern := range []string{ConvertPattern, DefaultPattern, ValidatePattern} {
		all.Handle(pattern, h)
	}
	all.Handle("/", other)
	return all
}

// answer makes the answer to a body, and says how it came out. It must not fail: what it cannot read it refuses.
type answer func(body []byte) (review any, outcome string)

// Outcomes of calls about WebApps.
const (
	outcomeOK       = "ok"
	outcomeRefused  = "refused"
	outcomeFailed   = "failed"
	outcomeRejected = "rejected"
)

func (h *KindHandler) serve(call string, purpose Purpose, limit int64, make answer) http.HandlerFunc {
	tokens := h.tokens.For(purpose)
	return func(w http.ResponseWriter, r *http.Request) {
		if !tokens.Verify(r.PathValue("member"), r.PathValue("token")) {
			h.reject(w, call, http.StatusNotFound)
			return
		}
		room := r.ContentLength
		if status := refusedLength(room, limit); status != 0 {
			h.rejectUnread(w, call, status)
			return
		}
		giveBack, err := h.turns.take(r.Context(), r.PathValue("member"), room)
		if err != nil {
			h.rejectUnread(w, call, http.StatusTooManyRequests)
			return
		}
		defer giveBack()
		buffer := bodies.Get().(*bytes.Buffer)
		defer func() { // the answer has copies of what it needs
			buffer.Reset()
			bodies.Put(buffer)
		}()
		body, status := readAll(w, r, room, buffer)
		if status == 0 && makeSafe(body, limit) != nil {
			status = http.StatusBadRequest
		}
		if status != 0 {
			h.reject(w, call, status)
			return
		}
		review, outcome := h.safely(call, make, body)
		h.answered.WithLabelValues(call, outcome).Inc()
		if review == nil {
			http.Error(w, http.StatusText(http.StatusInternalServerError), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(review) // who called may be gone
	}
}

// safely costs the call when an answer panics, not the connection with all that is on it.
func (h *KindHandler) safely(call string, make answer, body []byte) (review any, outcome string) {
	defer func() {
		if p := recover(); p != nil {
			h.log.Error("a call about WebApps panicked", "call", call, "stack", string(debug.Stack())) // without what was in it
			review, outcome = nil, outcomeFailed
		}
	}()
	return make(body)
}

func (h *KindHandler) reject(w http.ResponseWriter, call string, status int) {
	h.answered.WithLabelValues(call, outcomeRejected).Inc()
	http.Error(w, http.StatusText(status), status)
}

// rejectUnread refuses a call whose body is not read, and ends its connection.
func (h *KindHandler) rejectUnread(w http.ResponseWriter, call string, status int) {
	w.Header().Set("Connection", "close")
	h.reject(w, call, status)
}

// bodies are buffers for large bodies that follow each other; what nobody uses for a while is collected.
var bodies = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// readAll reads a body into a buffer, or returns the HTTP status to refuse it with.
func readAll(w http.ResponseWriter, r *http.Request, limit int64, into *bytes.Buffer) (body []byte, status int) {
	if r.Header.Get("Content-Encoding") != "" {
		return nil, http.StatusUnsupportedMediaType
	}
	into.Grow(int(min(r.ContentLength, limit)) + bytes.MinRead)
	_, err := into.ReadFrom(http.MaxBytesReader(w, r.Body, limit))
	if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
		return nil, http.StatusRequestEntityTooLarge
	}
	if err != nil {
		return nil, http.StatusBadRequest
	}
	return into.Bytes(), 0
}
