package api

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/plimsoll-dev/plimsoll/clusters/plain"
	"github.com/plimsoll-dev/plimsoll/hub/api/auth"
	"github.com/plimsoll-dev/plimsoll/hub/api/internal/apierror"
	plimsollv1 "github.com/plimsoll-dev/plimsoll/proto/plimsoll/v1"
)

// metrics of the calls of strangers; what replicas ask each other is not counted twice.
type metrics struct {
	requests *prometheus.CounterVec
	duration *prometheus.HistogramVec
}

func newMetrics(registerer prometheus.Registerer) (*metrics, error) {
	m := &metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "plimsoll_api_requests_total",
			Help: "API calls that were answered, by method and gRPC code; REST calls included. Without a method: refused before they had arrived.",
		}, []string{"method", "code"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "plimsoll_api_request_duration_seconds",
			Help:    "Time from an API call's arrival to its answer, waiting for an operation included.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30},
		}, []string{"method"}),
	}
	if registerer == nil {
		return m, nil
	}
	for _, collector := range []prometheus.Collector{m.requests, m.duration} {
		if err := registerer.Register(collector); err != nil {
			return nil, fmt.Errorf("register the API's metrics: %w", err)
		}
	}
	return m, nil
}

// refusedUnarrived counts a call that was refused before it had arrived: a stranger, who may name any method.
func (m *metrics) refusedUnarrived(why error) {
	m.requests.WithLabelValues("", status.Code(why).String()).Inc()
}

// observe counts and logs calls: who asked for what, and what came of it; never what the request held.
func observe(log *slog.Logger, metrics *metrics) grpc.UnaryServerInterceptor {
	return func(ctx context.Context, request any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
		begun, seen := time.Now(), &call{}
		answer, err := next(context.WithValue(ctx, callKey{}, seen), request)
		took := time.Since(begun)
		if code := status.Code(apierror.AsStatus(err)); code == codes.Internal && err != nil {
			log.Error("an API call failed", "method", info.FullMethod, "user", seen.user, "error", err)
		}
		err = apierror.AsStatus(err)
		code := status.Code(err)
		metrics.requests.WithLabelValues(info.FullMethod, code.String()).Inc()
		metrics.duration.WithLabelValues(info.FullMethod).Observe(took.Seconds())
		if level := levelOf(info.FullMethod, code); log.Enabled(ctx, level) { // what it says costs more than to find out that nobody reads it
			log.LogAttrs(ctx, level, "API call", slog.String("method", info.FullMethod), slog.String("code", code.String()),
				slog.String("user", seen.user), slog.String("remote", auth.Remote(ctx)), slog.Duration("duration", took))
		}
		if rules[info.FullMethod].order {
			log.LogAttrs(ctx, slog.LevelInfo, "API order", append(orderOf(request, answer),
				slog.String("method", info.FullMethod), slog.String("code", code.String()), slog.String("user", seen.user), slog.String("remote", auth.Remote(ctx)))...)
		}
		return answer, err
	}
}

// orderOf says what was ordered, and what names the order: this line is what an audit reads.
func orderOf(request, answer any) (attributes []slog.Attr) {
	add := func(name, value string) {
		if value != "" {
			attributes = append(attributes, slog.String(name, plain.Text(value, apierror.MaxText)))
		}
	}
	if r, ok := request.(interface{ GetCluster() string }); ok {
		add("member", r.GetCluster())
	}
	if r, ok := request.(interface{ GetController() string }); ok {
		add("controller", r.GetController())
	}
	if r, ok := request.(interface{ GetKind() string }); ok {
		add("kind", r.GetKind())
	}
	if r, ok := request.(interface{ GetNamespace() string }); ok {
		add("namespace", r.GetNamespace())
	}
	if r, ok := request.(interface{ GetName() string }); ok {
		add("name", r.GetName())
	}
	if r, ok := request.(*plimsollv1.RequeueMatchingRequest); ok {
		add("filter", r.GetFilter())
		add("request_id", r.GetRequestId())
		attributes = append(attributes, slog.Bool("validate_only", r.GetValidateOnly()), slog.Int("per_second", paceOf(r)))
	}
	if r, ok := request.(interface{ GetOperation() string }); ok {
		add("operation", r.GetOperation())
	}
	if r, ok := request.(interface{ GetForce() bool }); ok && r.GetForce() {
		attributes = append(attributes, slog.Bool("force", true))
	}
	if a, ok := answer.(*plimsollv1.RequeueMatchingResponse); ok && a != nil {
		attributes = append(attributes, slog.Int("matched", int(a.GetMatched())))
		add("operations", strings.Join(a.GetOperations(), " ")) // one for each member
	}
	_, cancels := request.(*plimsollv1.CancelOperationRequest) // which names the operation itself
	if a, ok := answer.(interface{ GetOperation() *plimsollv1.Operation }); ok && !cancels {
		add("operation", a.GetOperation().GetId())
	}
	return attributes
}

// levelOf keeps the log readable where somebody polls: orders and refusals are shown, reads on request.
func levelOf(method string, code codes.Code) slog.Level {
	switch code {
	case codes.Unauthenticated, codes.PermissionDenied, codes.Unavailable, codes.Aborted:
		return slog.LevelInfo
	case codes.Internal:
		return slog.LevelError
	}
	if rules[method].order {
		return slog.LevelInfo
	}
	return slog.LevelDebug
}
