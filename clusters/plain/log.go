package plain

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

const (
	// LinesPerSecond is how many lines a source may write in the long run.
	LinesPerSecond = 20
	// LineBurst is how many lines a source may write at once.
	LineBurst = 500
)

const (
	// maxMessage and maxValue are how many bytes a line's message and each of its values may have, and maxStack how many one
	// named "stack" may, which the runtime writes. A line has at most maxAttributes.
	maxMessage, maxValue, maxStack = 1 << 10, 2 << 10, 16 << 10
	maxAttributes                  = 32
	// Sources beyond maxSources share what one has.
	maxSources = 4096
)

// Log bounds what a logger writes: each text as [Text] does, and how many lines about one source are written. The source is the
// member that a line is about, else the user, else all strangers together, who have an address and no name; lines about none of
// these are the hub's own, and not counted. The first line of a source after some were left out says how many ("leftOut"). Lines
// below Info, which are written on request only, are not counted. The result is safe for concurrent use.
func Log(log *slog.Logger) *slog.Logger {
	if _, done := log.Handler().(*handler); done {
		return log
	}
	return slog.New(&handler{next: log.Handler(), sources: &sources{known: map[string]*source{}}})
}

type handler struct {
	next    slog.Handler
	sources *sources
	about   about // of what WithAttrs added
	grouped bool  // attributes are those of a group, and have no source
}

// Enabled implements [slog.Handler].
func (h *handler) Enabled(ctx context.Context, level slog.Level) bool {
	return h.next.Enabled(ctx, level)
}

// Handle implements [slog.Handler].
func (h *handler) Handle(ctx context.Context, record slog.Record) error {
	is, attributes := h.about, make([]slog.Attr, 0, min(record.NumAttrs(), maxAttributes)+1)
	record.Attrs(func(attribute slog.Attr) bool {
		if !h.grouped {
			is.add(attribute)
		}
		attributes = append(attributes, harmless(attribute, maxDepth))
		return len(attributes) < maxAttributes
	})
	leftOut, ok := 0, true
	if record.Level >= slog.LevelInfo {
		leftOut, ok = h.sources.allow(is.source(), time.Now())
	}
	if !ok {
		return nil
	}
	if leftOut > 0 {
		attributes = append(attributes, slog.Int("leftOut", leftOut))
	}
	bounded := slog.NewRecord(record.Time, record.Level, Text(record.Message, maxMessage), record.PC)
	bounded.AddAttrs(attributes...)
	return h.next.Handle(ctx, bounded)
}

// WithAttrs implements [slog.Handler].
func (h *handler) WithAttrs(attributes []slog.Attr) slog.Handler {
	with, bounded := *h, make([]slog.Attr, len(attributes))
	for i, attribute := range attributes {
		if !h.grouped {
			with.about.add(attribute)
		}
		bounded[i] = harmless(attribute, maxDepth)
	}
	with.next = h.next.WithAttrs(bounded)
	return &with
}

// WithGroup implements [slog.Handler].
func (h *handler) WithGroup(name string) slog.Handler {
	with := *h
	with.next, with.grouped = h.next.WithGroup(Text(name, maxValue)), true
	return &with
}

// maxDepth is how deep groups are looked into; what is deeper is written as one text.
const maxDepth = 4

// harmless bounds an attribute. What is neither a number, a time nor a group is written as the text that it has.
func harmless(attribute slog.Attr, depth int) slog.Attr {
	value := attribute.Value.Resolve()
	switch value.Kind() {
	case slog.KindBool, slog.KindDuration, slog.KindFloat64, slog.KindInt64, slog.KindTime, slog.KindUint64:
	case slog.KindGroup:
		if depth == 0 {
			value = slog.StringValue(Text(value.String(), maxValue))
			break
		}
		inside := slices.Clone(value.Group()[:min(len(value.Group()), maxAttributes)])
		for i := range inside {
			inside[i] = harmless(inside[i], depth-1)
		}
		value = slog.GroupValue(inside...)
	default:
		value = slog.StringValue(textOf(attribute.Key, value))
	}
	return slog.Attr{Key: Text(attribute.Key, maxValue), Value: value}
}

// textOf is the text of a value that is no number, time or group. A stack is the runtime's, and keeps its lines.
func textOf(key string, value slog.Value) string {
	if key == "stack" && value.Kind() == slog.KindString {
		stack := value.String()
		return stack[:min(len(stack), maxStack)]
	}
	if value.Kind() == slog.KindAny {
		return Text(fmt.Sprint(value.Any()), maxValue)
	}
	return Text(value.String(), maxValue)
}

// about is what a line says of where it comes from.
type about struct{ member, user, remote string }

func (a *about) add(attribute slog.Attr) {
	into := map[string]*string{"member": &a.member, "user": &a.user, "remote": &a.remote}[attribute.Key]
	if into != nil {
		*into = textOf(attribute.Key, attribute.Value.Resolve())
	}
}

// source is whose lines a line is counted with; empty: nobody's.
func (a about) source() string {
	switch {
	case a.member != "":
		return "member " + a.member
	case a.user != "":
		return "user " + a.user
	case a.remote != "":
		return "strangers"
	}
	return ""
}

// sources counts lines.
type sources struct {
	mu    sync.Mutex
	known map[string]*source
	rest  source // of those that are too many
}

// source is one of them.
type source struct {
	limiter *rate.Limiter
	leftOut int
}

// allow counts a line, and returns how many were left out before it; not ok: it is left out as well.
func (s *sources) allow(name string, now time.Time) (leftOut int, ok bool) {
	if name == "" {
		return 0, true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	is := s.of(name, now)
	if !is.limiter.AllowN(now, 1) {
		is.leftOut++
		return 0, false
	}
	leftOut, is.leftOut = is.leftOut, 0
	return leftOut, true
}

func (s *sources) of(name string, now time.Time) *source {
	if is := s.known[name]; is != nil {
		return is
	}
	if len(s.known) >= maxSources {
		for other, is := range s.known {
			if is.leftOut == 0 && is.limiter.TokensAt(now) >= LineBurst {
				delete(s.known, other)
			}
		}
	}
	is := &source{limiter: rate.NewLimiter(LinesPerSecond, LineBurst)}
	if len(s.known) >= maxSources {
		s.rest.limiter = cmp.Or(s.rest.limiter, is.limiter)
		return &s.rest
	}
	s.known[name] = is
	return is
}
