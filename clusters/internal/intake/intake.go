package intake

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"

	"github.com/plimsoll-dev/plimsoll/clusters/bodies"
	"github.com/plimsoll-dev/plimsoll/clusters/quantities"
)

const (
	// An object that is decoded takes more memory than its text has bytes; what takes more than so many times the largest
	// answer is made to.
	memoryPerByte = 3 // what takes more is paced as if it had more bytes
	// MaxListed is how many objects an answer may have that is a whole list.
	MaxListed = 50_000
	// MaxPage is how many objects one page of a cache's list may have; it is asked for 500.
	MaxPage = 10_000
	// maxRetryAfter is the longest that a member may ask to be left alone before a request is repeated, in seconds. Its
	// caches are as old as that.
	maxRetryAfter = 5
	// maxURL is how long the path and the query of a request may be, in bytes. They consist of names and tokens, some of which the member
	// itself has sent, and longer ones are not its own.
	maxURL = 64 << 10
	// leastPage is what a page costs at least, in bytes: a request and its answer take about as long as decoding that many.
	leastPage = 16 << 10
)

var (
	// ErrUnreadable says that an answer or an event is nothing that an API server would send.
	ErrUnreadable = errors.New("the answer cannot be read")
	errLongURL    = errors.New("the URL of a request is too long")
	errEncoded    = errors.New("the answer is compressed, which it was asked not to be")
)

// Intake bounds what a member's answers are before anything decodes them: their bytes, the number of objects, the memory
// that they will take, and the quantities in them. It stands outside the limits of time and bytes.
type Intake struct {
	Member  string
	Paths   *quantities.Paths
	answer  int64 // bytes of one answer
	Event   int64 // bytes of one event of a watch
	objects int   // of one answer
	Decodes Decodes
	Pace    Pace
	paced   bool // each answer counts, also small ones
	typed   bool // nothing is decoded into maps of any values
}

// Of is the same for answers of so many objects and bytes.
func (i Intake) Of(objects int, bytes int64) Intake {
	i.objects, i.answer = objects, bytes
	return i
}

// Paced is the same for lists whose pages nobody else paces: a member may make each of them as small, and as many, as it likes.
func (i Intake) Paced() Intake {
	i.paced = true
	return i
}

// Typed is the same for answers that are decoded into Go types only, such as those of discovery: what they take is counted for those types,
// and not for maps of any values.
func (i Intake) Typed() Intake {
	i.typed = true
	return i
}

// Guard bounds the answers of next.
func (i Intake) Guard(next http.RoundTripper) http.RoundTripper {
	return RoundTripper(func(req *http.Request) (*http.Response, error) {
		if length := len(req.URL.Path) + len(req.URL.RawQuery); length > maxURL {
			if req.Body != nil {
				_ = req.Body.Close()
			}
			return nil, fmt.Errorf("member %s: %w: it has %d bytes, at most %d are sent", i.Member, errLongURL, length, maxURL)
		}
		if IsStream(req) { // compressed events cannot be distinguished before they take memory
			req = req.Clone(req.Context())
			req.Header.Set("Accept-Encoding", "identity")
		}
		turn := i.Decodes.turnOf(req.Context())
		resp, err := next.RoundTrip(req)
		if err != nil {
			return nil, err
		}
		clampRetryAfter(resp.Header)
		if encoding := resp.Header.Get("Content-Encoding"); encoding != "" && encoding != "identity" {
			_ = resp.Body.Close()
			return nil, fmt.Errorf("member %s: %w", i.Member, errEncoded)
		}
		if resp.Header.Get("Content-Type") == "" { // a client would take it for what it asked for
			resp.Header.Set("Content-Type", "application/json")
		}
		protobuf, ok := encodingOf(resp)
		switch stream := streams(req, resp); {
		case ok:
			resp.Body = i.body(req, resp, stream, protobuf, turn)
		case stream: // a client would leave it open
			_ = resp.Body.Close()
			return nil, fmt.Errorf("member %s: the events of a watch: %w", i.Member, ErrUnreadable)
		default:
			asText(resp)
		}
		return resp, nil
	})
}

// clampRetryAfter shortens how long the member asks to be left alone.
func clampRetryAfter(header http.Header) {
	value := header.Get("Retry-After")
	if value == "" {
		return
	}
	switch seconds, err := strconv.Atoi(value); {
	case err != nil || seconds < 0:
		header.Del("Retry-After")
	case seconds > maxRetryAfter:
		header.Set("Retry-After", strconv.Itoa(maxRetryAfter))
	}
}

// encodingOf reports whether an answer is protobuf or, which is usual as well, JSON; not ok: it says that it is neither.
func encodingOf(resp *http.Response) (protobuf, ok bool) {
	media, _, err := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	protobuf = media == "application/vnd.kubernetes.protobuf"
	return protobuf, err == nil && (protobuf || media == "application/json")
}

// maxText is how many bytes of a text are read: of what is neither JSON nor protobuf, the hub wants the "ok" of a health check only, and
// the beginning of an error. Nothing looks through a text, and clients decode it all the same who read raw answers.
const maxText = 4 << 10

// asText has an answer be text, which no client decodes, and its beginning only.
func asText(resp *http.Response) {
	resp.Header.Set("Content-Type", "text/plain")
	resp.Body = struct {
		io.Reader
		io.Closer
	}{io.LimitReader(resp.Body, maxText), resp.Body}
}

// body is what clients read of an answer.
func (i Intake) body(req *http.Request, resp *http.Response, stream, protobuf bool, turn *turn) io.ReadCloser {
	body := &lookedThrough{from: resp.Body, turn: turn, failed: func(err error) error {
		err = fmt.Errorf("member %s: %w", i.Member, err)
		report(req.Context(), err)
		return err
	}}
	if stream {
		body.next = i.events(req.Context(), resp.Body, protobuf, body.turn)
	} else {
		body.next = i.whole(req.Context(), resp.Body, resp.ContentLength, protobuf, body.turn)
	}
	return body
}

// events returns the events of a watch one by one. When the next is asked for, the one before has been decoded.
func (i Intake) events(ctx context.Context, from io.Reader, protobuf bool, turn *turn) func() ([]byte, error) {
	frames := newFrameReader(from, i.Event, protobuf, turn.take)
	pace := watchPace{Pace: i.Pace}
	taken := 0
	limits := quantities.Limits{Objects: i.objects, Memory: int(memoryPerByte * i.Event), Token: MaxToken, Untyped: !i.typed, Taken: &taken}
	look := i.Paths.JSON
	if protobuf {
		look = i.Paths.ProtoEvent
	}
	return func() ([]byte, error) {
		turn.end()
		if err := i.Pace.enter(ctx); err != nil {
			return nil, err
		}
		frame, err := frames.next()
		if err != nil {
			i.wasted(frames.frame.Len())
			frames.release()
			return nil, err
		}
		if err := pace.wait(ctx, len(frame)); err != nil {
			return nil, err
		}
		taken = 0
		err = lookThrough(look, frames.content(), limits, "an event of a watch")
		if more := taken/memoryPerByte - len(frame); more > 0 {
			i.Pace.charge(more)
		}
		return frame, err
	}
}

// whole returns an answer that says to have length bytes; negative: it does not say.
func (i Intake) whole(ctx context.Context, from io.Reader, length int64, protobuf bool, turn *turn) func() ([]byte, error) {
	taken := 0
	limits := quantities.Limits{Objects: i.objects, Memory: int(memoryPerByte * i.answer), Token: MaxToken, Untyped: !i.typed, Taken: &taken}
	look := i.Paths.JSON
	if protobuf {
		look = i.Paths.Proto
	}
	var text *bytes.Buffer
	return func() ([]byte, error) {
		if text != nil { // whoever reads the answer has read all of it
			release(text)
			text = new(bytes.Buffer)
			return nil, io.EOF
		}
		var err error
		text, err = readWhole(from, min(length, i.answer), i.answer, func(bytes int) error {
			if err := turn.take(bytes); err != nil {
				return err
			}
			return i.Pace.enter(ctx)
		})
		had := text.Len()
		if err != nil || had == 0 {
			i.wasted(had)
			release(text)
			return nil, cmp.Or(err, io.EOF)
		}
		err = lookThrough(look, text.Bytes(), limits, "an answer")
		switch costs := max(had, taken/memoryPerByte); {
		case had > smallPart:
			i.Pace.charge(costs)
		case costs > smallPart || i.paced: // what else is small in every respect waits for nobody
			err = cmp.Or(err, i.Pace.take(ctx, min(max(costs, leastPage), paceBurst)))
		}
		if err != nil {
			release(text)
			return nil, err
		}
		return text.Bytes(), nil
	}
}

// wasted accounts for so many bytes that were read and cannot be used, if they are many: a member that sends them once sends them again,
// and what the pool of buffers does not keep is garbage already.
func (i Intake) wasted(bytes int) {
	if bytes > smallPart {
		i.Pace.charge(memoryPerByte * bytes)
	}
}

// readWhole reads an answer that says to have so many bytes; the layer below bounds them to most. Before it takes memory for more than
// a small answer it calls grown. What it returns is never nil, and has what was read before an error.
func readWhole(from io.Reader, length, most int64, grown func(bytes int) error) (*bytes.Buffer, error) {
	into := bytes.NewBuffer(make([]byte, 0, min(max(length, 0), smallPart)+bytes.MinRead))
	_, err := into.ReadFrom(io.LimitReader(from, smallPart+1))
	if err != nil || into.Len() <= smallPart {
		return into, err
	}
	if err := grown(into.Len()); err != nil {
		return new(bytes.Buffer), err
	}
	return fill(larger(into, int(max(length, int64(into.Len())))+bytes.MinRead), from, most)
}

// fill reads until the end. A buffer grows in few steps and to no more than most.
func fill(into *bytes.Buffer, from io.Reader, most int64) (*bytes.Buffer, error) {
	for {
		if into.Available() < bytes.MinRead {
			into = larger(into, int(max(min(4*int64(into.Len()), most), int64(into.Len())))+bytes.MinRead)
		}
		room := min(into.Available(), max(int(most)-into.Len(), 0)+bytes.MinRead) // the memory may have served a larger answer before
		n, err := from.Read(into.AvailableBuffer()[:room])
		into.Write(into.AvailableBuffer()[:n]) // where it is already
		switch {
		case errors.Is(err, io.EOF):
			return into, nil
		case err != nil:
			return into, err
		}
	}
}

// larger moves what a buffer has to a shared one of so many bytes.
func larger(from *bytes.Buffer, size int) *bytes.Buffer {
	into := bodies.Shared.Get(size)
	into.Write(from.Bytes())
	release(from)
	return into
}

// release gives the memory of a large buffer to the next ones. Nothing may refer to its bytes any more.
func release(b *bytes.Buffer) {
	if b.Cap() > smallPart {
		bodies.Shared.Put(b)
	}
}

func lookThrough(look func([]byte, quantities.Limits) error, text []byte, limits quantities.Limits, what string) error {
	switch err := look(text, limits); {
	case err == nil:
		return nil
	case errors.Is(err, quantities.ErrTooLarge):
		return fmt.Errorf("%s: %w: it has more than %d objects, or they take more than %d bytes", what, ErrTooLarge, limits.Objects, limits.Memory)
	default:
		return fmt.Errorf("%s: %w: %w", what, ErrUnreadable, err)
	}
}

// lookedThrough is a body whose parts are looked through before they are read.
type lookedThrough struct {
	from   io.Closer
	turn   *turn
	next   func() ([]byte, error) // returns the next part, io.EOF at the end
	failed func(error) error      // names the member, and is called with what has to be known
	part   []byte
	err    error
}

func (b *lookedThrough) Read(p []byte) (int, error) {
	for len(b.part) == 0 {
		if b.err == nil {
			if b.part, b.err = b.next(); errors.Is(b.err, ErrTooLarge) || errors.Is(b.err, ErrUnreadable) {
				b.part, b.err = nil, b.failed(b.err)
			}
		}
		if b.err != nil {
			return 0, b.err
		}
	}
	n := copy(p, b.part)
	b.part = b.part[n:]
	return n, nil
}

// Close closes the body, which is decoded, or its call decodes it now, or nobody wants it any more.
func (b *lookedThrough) Close() error {
	defer b.turn.bodyClosed()
	return b.from.Close()
}
