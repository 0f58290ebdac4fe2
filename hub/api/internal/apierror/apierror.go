// Package apierror makes the errors that callers of the API get: each has a reason for programs, bad requests name the field,
// and no text in them was written for anybody else.
//
// It knows neither the calls nor the cluster.
package apierror

import (
	"context"
	"errors"
	"fmt"
	"time"

	"buf.build/go/protovalidate"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/protoadapt"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/plimsoll-dev/plimsoll/clusters/plain"
)

// Violations turns a validation error into INVALID_ARGUMENT, with each field and the rule that it breaks. It repeats no
// value: a caller may have put a secret into the wrong field.
func Violations(err error) error {
	var invalid *protovalidate.ValidationError
	if !errors.As(err, &invalid) {
		return status.Error(codes.Internal, "the request could not be checked")
	}
	var broken []*errdetails.BadRequest_FieldViolation
	for _, violation := range invalid.Violations {
		broken = append(broken, &errdetails.BadRequest_FieldViolation{
			Field:       protovalidate.FieldPathString(violation.Proto.GetField()),
			Description: violation.Proto.GetMessage(),
			Reason:      violation.Proto.GetRuleId(),
		})
	}
	return fields(broken...)
}

// InvalidField is INVALID_ARGUMENT about one field, for what a .proto file cannot say.
func InvalidField(field, reason, description string) error {
	return fields(&errdetails.BadRequest_FieldViolation{Field: field, Reason: reason, Description: description})
}

func fields(broken ...*errdetails.BadRequest_FieldViolation) error {
	text := "the request is invalid"
	for i, violation := range broken {
		text += fmt.Sprintf("%s%s: %s", [...]string{": ", "; "}[min(i, 1)], violation.GetField(), violation.GetDescription())
	}
	answer := status.New(codes.InvalidArgument, text)
	detailed, err := answer.WithDetails(&errdetails.BadRequest{FieldViolations: broken})
	if err != nil {
		return answer.Err()
	}
	return detailed.Err()
}

// NoMember is NOT_FOUND about a member.
func NoMember(member string) error {
	return WithReason(status.Newf(codes.NotFound, "member %q: no registration Secret has that name", member), "MEMBER_NOT_FOUND",
		map[string]string{"member": member}).Err()
}

// Domain is that of the reasons: the API group that access to the hub's API is granted for.
const Domain = "api.plimsoll.dev"

const (
	// TooManyCalls is the reason of calls above a caller's limit: the next one is let in soon.
	TooManyCalls = "TOO_MANY_CALLS"
	// NotAnswering is the reason of an order about a member whose breaker is open.
	NotAnswering = "MEMBER_NOT_ANSWERING"
)

const (
	// retrySoon is when to ask again for what changes by itself, retryLater for what others have to let go of.
	retrySoon, retryLater = time.Second, 10 * time.Second
)

// WithReason says for programs why a call failed, and when to try again where that can help.
func WithReason(is *status.Status, reason string, about map[string]string) *status.Status {
	details := []protoadapt.MessageV1{&errdetails.ErrorInfo{Reason: reason, Domain: Domain, Metadata: about}}
	switch is.Code() {
	case codes.Unavailable:
		details = append(details, &errdetails.RetryInfo{RetryDelay: durationpb.New(retrySoon)})
	case codes.ResourceExhausted:
		delay := retryLater
		if reason == TooManyCalls {
			delay = retrySoon
		}
		details = append(details, &errdetails.RetryInfo{RetryDelay: durationpb.New(delay)})
	}
	if reason == NotAnswering { // its breaker lets a probe through now and then
		details = append(details, &errdetails.RetryInfo{RetryDelay: durationpb.New(retryLater)})
	}
	detailed, err := is.WithDetails(details...)
	if err != nil { // a status that is none
		return is
	}
	return detailed
}

// WithDelay says for programs why a call failed, and in how long it can be made again.
func WithDelay(is *status.Status, reason string, delay time.Duration) *status.Status {
	detailed, err := is.WithDetails(&errdetails.ErrorInfo{Reason: reason, Domain: Domain}, &errdetails.RetryInfo{RetryDelay: durationpb.New(delay)})
	if err != nil { // a status that is none
		return is
	}
	return detailed
}

// ReasonOf is the reason that an error says for programs; "": it says none.
func ReasonOf(err error) string {
	for _, detail := range status.Convert(err).Details() {
		if info, ok := detail.(*errdetails.ErrorInfo); ok && info.GetDomain() == Domain {
			return info.GetReason()
		}
	}
	return ""
}

// RetryDelay is in how long the call can be made again, as the error says for programs; 0: it does not say.
func RetryDelay(is *status.Status) time.Duration {
	for _, detail := range is.Details() {
		if info, ok := detail.(*errdetails.RetryInfo); ok {
			return info.GetRetryDelay().AsDuration()
		}
	}
	return 0
}

// Explain makes sure that an error has a reason: without one of its own, its code is that.
func Explain(err error) error {
	is, ok := status.FromError(err)
	if !ok || is.Code() == codes.OK {
		return err
	}
	for _, detail := range is.Details() {
		if _, has := detail.(*errdetails.ErrorInfo); has {
			return err
		}
	}
	return WithReason(is, reasons[is.Code()], nil).Err()
}

// reasons are those of errors that have none of their own.
var reasons = map[codes.Code]string{
	codes.Canceled: "CANCELED", codes.Unknown: "UNKNOWN", codes.InvalidArgument: "INVALID_ARGUMENT", codes.DeadlineExceeded: "DEADLINE_EXCEEDED",
	codes.NotFound: "NOT_FOUND", codes.AlreadyExists: "ALREADY_EXISTS", codes.PermissionDenied: "PERMISSION_DENIED",
	codes.ResourceExhausted: "RESOURCE_EXHAUSTED", codes.FailedPrecondition: "FAILED_PRECONDITION", codes.Aborted: "ABORTED",
	codes.OutOfRange: "OUT_OF_RANGE", codes.Unimplemented: "UNIMPLEMENTED", codes.Internal: "INTERNAL", codes.Unavailable: "UNAVAILABLE",
	codes.DataLoss: "DATA_LOSS", codes.Unauthenticated: "UNAUTHENTICATED",
}

// AsStatus makes sure that a caller gets a status, and no text of an error that was not written for callers.
func AsStatus(err error) error {
	if err == nil {
		return nil
	}
	// Not errors.As: a status that was wrapped has text around it that was not written for callers.
	if is, ok := err.(interface{ GRPCStatus() *status.Status }); ok {
		return Explain(bounded(is.GRPCStatus(), err))
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return Explain(status.FromContextError(err).Err())
	}
	return Explain(Internal())
}

// MaxText is how many bytes a message in an answer may have: it may repeat what a caller, a tenant or a member wrote.
const MaxText = 4 << 10

// bounded is an error with the status is, as one line that is not too long.
func bounded(is *status.Status, err error) error {
	text := plain.Text(is.Message(), MaxText)
	if text == is.Message() {
		return err
	}
	message := is.Proto()
	message.Message = text
	return status.ErrorProto(message)
}

// Internal is what a caller gets in place of what only the log may say.
func Internal() error {
	return status.Error(codes.Internal, "internal error; the hub's log has the details")
}
