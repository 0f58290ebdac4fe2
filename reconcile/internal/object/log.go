package object

import (
	"context"
	"log/slog"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// objectLog names an object in what is logged, and costs a reconcile that logs nothing next to nothing.
type objectLog struct {
	slog.Handler
	namespace, name string
}

// Log makes the logger of a request.
func Log(log *slog.Logger, obj client.Object) *slog.Logger {
	return slog.New(&objectLog{log.Handler(), obj.GetNamespace(), obj.GetName()})
}

func (l *objectLog) attrs() []slog.Attr {
	return []slog.Attr{slog.String("namespace", l.namespace), slog.String("name", l.name)}
}

// Handle implements slog.Handler.
func (l *objectLog) Handle(ctx context.Context, record slog.Record) error {
	return l.Handler.WithAttrs(l.attrs()).Handle(ctx, record)
}

// WithAttrs implements slog.Handler.
func (l *objectLog) WithAttrs(attrs []slog.Attr) slog.Handler {
	return l.Handler.WithAttrs(l.attrs()).WithAttrs(attrs)
}

// WithGroup implements slog.Handler.
func (l *objectLog) WithGroup(name string) slog.Handler {
	return l.Handler.WithAttrs(l.attrs()).WithGroup(name)
}
