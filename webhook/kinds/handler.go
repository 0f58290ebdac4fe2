package kinds

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

	"github.com/plimsoll-dev/plimsoll/clusters/bodies"
	"github.com/plimsoll-dev/plimsoll/clusters/quantities"
	"github.com/plimsoll-dev/plimsoll/internal/shares"
	"github.com/plimsoll-dev/plimsoll/reconcile/module"
	"github.com/plimsoll-dev/plimsoll/webhook"
	"github.com/plimsoll-dev/plimsoll/webhook/internal/calls"
)

const (
	// ConvertPattern is where API servers send objects of any kind that they want in another version.
	ConvertPattern = "POST /webhook/v1/members/{member}/{token}/convert"
	// kindPattern is below what they ask about one kind, by its plural.
	kindPattern = "POST /webhook/v1/members/{member}/{token}/%s/%s"

	// What calls ask: for objects in another version, and about one kind that one is completed, and whether it may be stored.
	callConvert, callDefault, callValidate = "convert", "default", "validate"

	// maxConversion is the largest conversion that is read: an API server that lists sends all objects of a page at once.
	maxConversion = 16 << 20
)

// Handler answers what members' API servers ask about kinds of the hub's modules: conversions, defaults and whether one may
// be stored. It needs nothing but the question, so every replica answers, whoever owns the member.
type Handler struct {
	tokens   *webhook.Tokens
	kinds    []module.Resource
	paths    *quantities.Paths // of all that is decoded
	calls    *http.ServeMux
	patterns []string
	turns    *turns
	large    sync.Mutex // held while a large body is decoded
	refusals *calls.Refusals
	answered *prometheus.CounterVec
	log      *slog.Logger
}

// NewHandler creates the handler of what members ask about kinds, and registers its metric. No two kinds may have one plural.
func NewHandler(tokens *webhook.Tokens, kinds []module.Resource, registerer prometheus.Registerer, log *slog.Logger) (*Handler, error) {
	h := &Handler{tokens: tokens, kinds: kinds, calls: http.NewServeMux(), turns: newTurns(), refusals: calls.NewRefusals(), log: log}
	h.answered = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "plimsoll_kind_calls_total",
		Help: "Calls about kinds of the hub's modules by the kind's plural (conversions: of all kinds, empty), what was asked (convert, default, validate) and the outcome (ok, refused, failed, rejected).",
	}, []string{"kind", "call", "outcome"})
	if err := registerer.Register(h.answered); err != nil {
		return nil, fmt.Errorf("metrics of calls about kinds: %w", err)
	}
	var err error
	if h.paths, err = pathsOf(kinds); err != nil {
		return nil, err
	}
	h.serve(ConvertPattern, asking{call: callConvert}, webhook.ForConversions, maxConversion, h.serveConversion)
	seen := map[string]bool{}
	for i := range kinds {
		kind := &kinds[i]
		if seen[kind.Plural] {
			return nil, fmt.Errorf("two kinds have the plural %s", kind.Plural)
		}
		seen[kind.Plural] = true
		if kind.Complete != nil {
			h.serve(fmt.Sprintf(kindPattern, kind.Plural, callDefault), asking{kind.Plural, callDefault}, forKind(kind), calls.MaxBody,
				h.reviewed(func(body []byte) (any, string) { return complete(kind, body) }))
		}
		if kind.Review != nil {
			h.serve(fmt.Sprintf(kindPattern, kind.Plural, callValidate), asking{kind.Plural, callValidate}, forKind(kind), calls.MaxBody,
				h.reviewed(func(body []byte) (any, string) { return validate(kind, body) }))
		}
	}
	return h, nil
}

// asking is what a call asks, for its metric and the log.
type asking struct{ kind, call string }

// forKind is the purpose of the tokens with which one kind is asked about.
func forKind(kind *module.Resource) webhook.Purpose { return webhook.Purpose(kind.Plural) }

// ServeHTTP answers one call. An unknown member and a wrong token get the same 404.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) { h.calls.ServeHTTP(w, r) }

// Beside serves what is asked about kinds, and leaves everything else to another handler.
func (h *Handler) Beside(other http.Handler) http.Handler {
	all := http.NewServeMux()
	for _, pattern := range h.patterns {
		all.Handle(pattern, h)
	}
	all.Handle("/", other)
	return all
}

// answer makes the answer to a body, and says how it came out. It must not fail: what it cannot read it refuses.
type answer func(body []byte) (review any, outcome string)

// Outcomes of calls about kinds.
const (
	outcomeOK       = "ok"
	outcomeRefused  = "refused"
	outcomeFailed   = "failed"
	outcomeRejected = "rejected"
)

// answerer answers a call, or refuses it. It returns false if the refusal is the caller's doing, and not that of all callers together.
type answerer func(http.ResponseWriter, *http.Request, asking) bool

// serve has calls of a pattern answered that carry a token of the purpose.
func (h *Handler) serve(pattern string, call asking, purpose webhook.Purpose, limit int64, answer answerer) {
	h.patterns = append(h.patterns, pattern)
	admit := h.admit(h.tokens.For(purpose), limit, answer)
	h.calls.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
		if !admit(w, r, call) {
			h.refusals.Wait(r, r.PathValue("member")) // the refusal is sent when this returns; what the call took is free already
		}
	})
}

// admit has a call answered that is allowed, and whose turn it is.
func (h *Handler) admit(tokens *webhook.Tokens, limit int64, answer answerer) answerer {
	return func(w http.ResponseWriter, r *http.Request, call asking) bool {
		if !tokens.Verify(r.PathValue("member"), r.PathValue("token")) {
			h.reject(w, call, http.StatusNotFound)
			return false
		}
		if status := calls.RefusedLength(r.ContentLength, limit); status != 0 {
			h.rejectUnread(w, call, status)
			return false
		}
		if r.Header.Get("Content-Encoding") != "" {
			h.rejectUnread(w, call, http.StatusUnsupportedMediaType)
			return false
		}
		from := shares.Caller(r.Context())
		if call.call == callConvert {
			if err := h.turns.due(r.Context(), r.PathValue("member")); err != nil {
				shares.Excused(from) // the next line ends its connection
				h.rejectUnread(w, call, http.StatusTooManyRequests)
				return false
			}
		}
		giveBack, err := h.turns.take(r.Context(), r.PathValue("member"), r.ContentLength)
		if err != nil {
			shares.Excused(from) // the next line ends its connection
			h.rejectUnread(w, call, http.StatusTooManyRequests)
			return errors.Is(err, errAllBusy)
		}
		defer giveBack()
		shares.HasRoom(from)
		r.Body = http.MaxBytesReader(w, r.Body, limit)
		if r.ContentLength > calls.LargeCall {
			r.Body = calls.InPieces(r.Body)
		}
		if !answer(w, r, call) {
			return false
		}
		shares.Known(from)
		return true
	}
}

// reviewed answers a call whose body is read as a whole: it is about one object.
func (h *Handler) reviewed(make answer) answerer {
	return func(w http.ResponseWriter, r *http.Request, call asking) bool {
		buffer := bodies.Shared.Get(int(r.ContentLength) + bytes.MinRead)
		defer bodies.Shared.Put(buffer) // the answer has copies of what it needs
		var review any
		var outcome string
		_, err := buffer.ReadFrom(r.Body)
		if err == nil {
			review, outcome, err = h.review(call, make, buffer.Bytes())
		}
		if err != nil {
			h.reject(w, call, http.StatusBadRequest)
			return false
		}
		h.answered.WithLabelValues(call.kind, call.call, outcome).Inc()
		if review == nil {
			http.Error(w, http.StatusText(http.StatusInternalServerError), http.StatusInternalServerError)
			return false
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(review) // who called may be gone
		return true
	}
}

// review makes the answer to a body that was read; an error: it may not be decoded.
func (h *Handler) review(call asking, make answer, body []byte) (review any, outcome string, err error) {
	defer h.oneIfLarge(len(body))()
	if err := h.makeSafe(body, calls.MaxBody); err != nil {
		return nil, "", err
	}
	review, outcome = h.safely(call, make, body)
	return review, outcome, nil
}

// oneIfLarge waits, if there are many bytes to decode, until no other call decodes as many: that is done in one piece, and would
// otherwise take all processors, one call each. What it returns lets the next one go on.
func (h *Handler) oneIfLarge(bytes int) (done func()) {
	if bytes <= calls.LargeCall {
		return func() {}
	}
	h.large.Lock()
	return h.large.Unlock
}

// safely costs the call when an answer panics, not the connection with all that is on it.
func (h *Handler) safely(call asking, make answer, body []byte) (review any, outcome string) {
	defer func() {
		if p := recover(); p != nil {
			h.logPanic(call)
			review, outcome = nil, outcomeFailed
		}
	}()
	return make(body)
}

// logPanic logs where a call panicked, without what was in it.
func (h *Handler) logPanic(call asking) {
	h.log.Error("a call about a kind panicked", "kind", call.kind, "call", call.call, "stack", string(debug.Stack()))
}

func (h *Handler) reject(w http.ResponseWriter, call asking, status int) {
	h.answered.WithLabelValues(call.kind, call.call, outcomeRejected).Inc()
	w.WriteHeader(status) // without a body, which a caller could leave unread
}

// rejectUnread refuses a call whose body is not read, and ends its connection.
func (h *Handler) rejectUnread(w http.ResponseWriter, call asking, status int) {
	w.Header().Set("Connection", "close")
	h.reject(w, call, status)
}
