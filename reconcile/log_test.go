package reconcile

import (
	"context"
	"log/slog"
	"sync"
)

// recordingLog is a slog.Handler that keeps what is logged.
type recordingLog struct {
	mu    sync.Mutex
	lines []logLine
}

type logLine struct {
	level   slog.Level
	message string
	attrs   map[string]string
}

type boundLog struct {
	*recordingLog
	attrs []slog.Attr
}

func (l *recordingLog) Enabled(context.Context, slog.Level) bool { return true }
func (l *recordingLog) Handle(ctx context.Context, r slog.Record) error {
	return boundLog{recordingLog: l}.Handle(ctx, r)
}
func (l *recordingLog) WithAttrs(attrs []slog.Attr) slog.Handler { return boundLog{l, attrs} }
func (l *recordingLog) WithGroup(string) slog.Handler            { return l }

func (b boundLog) WithAttrs(attrs []slog.Attr) slog.Handler {
	return boundLog{b.recordingLog, append(append([]slog.Attr(nil), b.attrs...), attrs...)}
}

func (b boundLog) Handle(_ context.Context, r slog.Record) error {
	line := logLine{level: r.Level, message: r.Message, attrs: map[string]string{}}
	for _, a := range b.attrs {
		line.attrs[a.Key] = a.Value.String()
	}
	r.Attrs(func(a slog.Attr) bool {
		line.attrs[a.Key] = a.Value.String()
		return true
	})
	b.mu.Lock()
	defer b.mu.Unlock()
	b.lines = append(b.lines, line)
	return nil
}

// at returns the lines of a level.
func (l *recordingLog) at(level slog.Level) []logLine {
	l.mu.Lock()
	defer l.mu.Unlock()
	var found []logLine
	for _, line := range l.lines {
		if line.level == level {
			found = append(found, line)
		}
	}
	return found
}
