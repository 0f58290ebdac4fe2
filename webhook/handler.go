package webhook

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/plimsoll-dev/plimsoll/clusters/bodies"
	"github.com/plimsoll-dev/plimsoll/internal/shares"
	"github.com/plimsoll-dev/plimsoll/webhook/internal/calls"
)

const (
	// CallPattern is where API servers send the pods of a member.
	CallPattern = "POST /webhook/v1/members/{member}/{token}/pods"

	// maxPooled is the largest buffer that is kept for the next call.
	maxPooled = 256 << 10
	// patchSize has room for the patch of a usual pod.
	patchSize = 768

	// placeTimeout leaves API servers, which wait for 2 s, time for the way there and back.
	placeTimeout = 1500 * time.Millisecond
)

// HandlerOptions are what a [Handler] works with; all are needed.
type HandlerOptions struct {
	Tokens    *Tokens
	Router    Router
	Forwarder *Forwarder
	Placer    Placer
	Metrics   *Metrics
	Log       *slog.Logger
}

// Handler answers the admission calls of members. It lets every pod through; see [Placer] for what it may add.
type Handler struct {
	options      HandlerOptions
	calls, peers *http.ServeMux
	refusals     *calls.Refusals
}

// NewHandler creates the handler of both [CallPattern] and, as [Handler.Peer], [PeerPattern].
func NewHandler(options HandlerOptions) *Handler {
	h := &Handler{options: options, calls: http.NewServeMux(), peers: http.NewServeMux(), refusals: calls.NewRefusals()}
	h.calls.HandleFunc(CallPattern, h.fromMember)
	h.calls.HandleFunc("/", h.fromNobody)
	h.peers.HandleFunc(PeerPattern, h.fromPeer)
	return h
}

// ServeHTTP answers the calls of members' API servers. An unknown member and a wrong token get the same 404.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) { h.calls.ServeHTTP(w, r) }

// Peer answers calls that another replica forwarded. It must be served to other replicas only (mutual TLS, hub/pki): it asks for no token.
func (h *Handler) Peer() http.Handler { return h.peers }

func (h *Handler) fromMember(w http.ResponseWriter, r *http.Request) {
	member := r.PathValue("member")
	if !h.options.Tokens.Verify(member, r.PathValue("token")) {
		h.reject(w, "not_found", http.StatusNotFound)
		h.refusals.Wait(r, member)
		return
	}
	if !h.answer(w, r, member, h.options.Forwarder) {
		h.refusals.Wait(r, member) // the refusal is sent when this returns; what the call took is free already
	}
}

// fromNobody refuses what is no call at all. No member is named, so the refusals of an address wait for each other.
func (h *Handler) fromNobody(w http.ResponseWriter, r *http.Request) {
	status := http.StatusNotFound
	if r.Method != http.MethodPost {
		status = http.StatusMethodNotAllowed
	}
	h.rejectUnread(w, "not_found", status)
	h.refusals.Wait(r, shares.Address(r.RemoteAddr).String())
}

// fromPeer does not forward again, so that two replicas that take each other for the owner do not play ball.
func (h *Handler) fromPeer(w http.ResponseWriter, r *http.Request) {
	h.answer(w, r, r.PathValue("member"), nil)
}

// answer answers a call, or refuses it. It returns false if the refusal is the caller's doing, and not that of all callers together.
func (h *Handler) answer(w http.ResponseWriter, r *http.Request, member string, forwarder *Forwarder) bool {
	started := time.Now()
	ctx := withDeadline(r.Context(), started.Add(placeTimeout))
	defer ctx.cancel()
	buffers := borrow()
	defer buffers.giveBack()

	room := r.ContentLength
	if status := calls.RefusedLength(room, calls.MaxBody); status != 0 {
		h.rejectUnread(w, lengthReasons[status], status)
		return false
	}
	from := shares.Caller(r.Context())
	reading, err := h.options.Metrics.begin(member, room)
	if err != nil {
		shares.Excused(from) // the next line ends its connection
		h.rejectUnread(w, "busy", http.StatusTooManyRequests)
		return errors.Is(err, errAllBusy)
	}
	defer h.options.Metrics.end(reading, room)
	shares.HasRoom(from)
	if room > maxPooled {
		buffers.large = bodies.Shared.Get(int(room) + bytes.MinRead)
	}
	if reason, status := readCall(w, r, buffers.into()); status != 0 {
		h.reject(w, reason, status)
		return false
	}
	call := &buffers.call
	err = call.decode(buffers.into().Bytes(), h.reads)
	if err != nil || call.apiVersion != calls.ReviewVersion || call.kind != "AdmissionReview" || !plainUID(call.pod.RequestUID) {
		h.reject(w, "unreadable", http.StatusBadRequest)
		return false
	}
	shares.Known(from)
	outcome := h.decide(ctx, member, call, forwarder, buffers)
	h.options.Metrics.count(member, outcome, time.Since(started))
	header := w.Header()
	header["Content-Type"] = jsonType
	header["Content-Length"] = []string{strconv.Itoa(buffers.answer.Len())}
	_, _ = w.Write(buffers.answer.Bytes()) // who called may be gone
	return true
}

var jsonType = []string{"application/json"}

// decide writes the answer to a call that was understood, and returns its outcome.
func (h *Handler) decide(ctx context.Context, member string, call *review, forwarder *Forwarder, buffers *buffers) string {
	if call.operation != "CREATE" || call.group != "" || call.resource != "pods" || call.subResource != "" {
		buffers.allow(call.pod.RequestUID, nil)
		return outcomeIgnored
	}
	if patch, is := checkPatch(call, buffers.patch[:0]); is {
		buffers.allow(call.pod.RequestUID, patch)
		return outcomeCheck
	}
	local, owner := h.options.Router.Route(member)
	switch {
	case local:
		call.pod.PatchInto = buffers.patch[:0]
		placed := h.place(ctx, member, &call.pod)
		buffers.allow(call.pod.RequestUID, placed.Patch)
		if call.pod.DryRun && len(placed.Patch) > 0 {
			return outcomeDryRun
		}
		return string(placed.Outcome)
	case owner == "" || forwarder == nil:
		buffers.allow(call.pod.RequestUID, nil)
		return outcomeNoOwner
	}
	if err := forwarder.forward(ctx, owner, member, buffers.into().Bytes(), &buffers.answer); err != nil {
		h.options.Log.Debug("admitted a pod without a decision: the owner did not answer", "member", member, "error", err)
		buffers.answer.Reset()
		buffers.allow(call.pod.RequestUID, nil)
		return outcomeNoOwner
	}
	return outcomeForwarded
}

// reject refuses what is no call of a member. The API server lets the pod through (failurePolicy Ignore).
func (h *Handler) reject(w http.ResponseWriter, reason string, status int) {
	h.options.Metrics.rejected.WithLabelValues(reason).Inc()
	w.WriteHeader(status) // without a body, which a caller could leave unread
}

// rejectUnread refuses a call whose body is not read: its connection ends, or what is left of the body would be read to get at the
// next call.
func (h *Handler) rejectUnread(w http.ResponseWriter, reason string, status int) {
	w.Header().Set("Connection", "close")
	h.reject(w, reason, status)
}

var lengthReasons = map[int]string{http.StatusLengthRequired: "no_length", http.StatusRequestEntityTooLarge: "too_large"}

// readCall reads the body of a call; otherwise it returns the HTTP status to refuse it with, and the reason to count.
func readCall(w http.ResponseWriter, r *http.Request, into *bytes.Buffer) (reason string, status int) {
	mediaType, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";")
	if !strings.EqualFold(strings.TrimSpace(mediaType), "application/json") || r.Header.Get("Content-Encoding") != "" {
		return "content_type", http.StatusUnsupportedMediaType
	}
	into.Grow(int(r.ContentLength) + bytes.MinRead) // it has been judged; growing step by step would take twice as much
	body := http.MaxBytesReader(w, r.Body, calls.MaxBody)
	if r.ContentLength > calls.LargeCall {
		body = calls.InPieces(body)
	}
	_, err := into.ReadFrom(body)
	if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
		return "too_large", http.StatusRequestEntityTooLarge
	}
	if err != nil {
		return "unreadable", http.StatusBadRequest
	}
	return "", 0
}

// buffers are what one call is read into and answered from.
type buffers struct {
	body, answer bytes.Buffer
	large        *bytes.Buffer // in place of body where that would be larger than what is kept
	call         review
	patch        [patchSize]byte
}

var bufferPool = sync.Pool{New: func() any { return new(buffers) }}

func borrow() *buffers { return bufferPool.Get().(*buffers) }

// into is what the body is read into.
func (b *buffers) into() *bytes.Buffer {
	if b.large != nil {
		return b.large
	}
	return &b.body
}

func (b *buffers) giveBack() {
	b.call.reset() // refers to the body
	if b.large != nil {
		bodies.Shared.Put(b.large)
		b.large = nil
	}
	if b.body.Cap() > maxPooled || b.answer.Cap() > maxPooled {
		return
	}
	b.body.Reset()
	b.answer.Reset()
	bufferPool.Put(b)
}

func (b *buffers) allow(uid string, patch []byte) {
	b.answer.Write(appendAnswer(b.answer.AvailableBuffer(), uid, patch))
}
