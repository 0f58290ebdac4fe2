package api

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

// violations turns a validation error into INVALID_ARGUMENT, with each field and the rule that it breaks. It repeats no
// value: a caller may have put a secret into the wrong field.
func violations(err error) error {
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
	return invalidFields(broken...)
}

// invalidField is INVALID_ARGUMENT about one field, for what a .proto file cannot say.
func invalidField(field, reason, description string) error {
	return invalidFields(&errdetails.BadRequest_FieldViolation{Field: field, Reason: reason, Description: description})
}

func invalidFields(broken ...*errdetails.BadRequest_FieldViolation) error {
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

func errNoMember(member string) error {
	return withReason(status.Newf(codes.NotFound, "member %q: no registration Secret has that name", member), "MEMBER_NOT_FOUND",
		map[string]string{"member": member}).Err()
}

const (
	// retrySoon is when to ask again for what changes by itself, retryLater for what others have to let go of.
	retrySoon, retryLater = time.Second, 10 * time.Second
)

// withReason says for programs why a call failed, and when to try again where that can help.
func withReason(is *status.Status, reason string, about map[string]string) *status.Status {
	details := []protoadapt.MessageV1{&errdetails.ErrorInfo{Reason: reason, Domain: Group, Metadata: about}}
	switch is.Code() {
	case codes.Unavailable:
		details = append(details, &errdetails.RetryInfo{RetryDelay: durationpb.New(retrySoon)})
	case codes.ResourceExhausted:
		delay := retryLater
		if reason == reasonTooManyCalls {
			delay = retrySoon
		}
		details = append(details, &errdetails.RetryInfo{RetryDelay: durationpb.New(delay)})
	}
	if reason == reasonNotAnswering { // its breaker lets a probe through now and then
		details = append(details, &errdetails.RetryInfo{RetryDelay: durationpb.New(retryLater)})
	}
	detailed, err := is.WithDetails(details...)
	if err != nil { // a status that is none
		return is
	}
	return detailed
}

// reasonOf is the reason that an error says for programs; "": it says none.
func reasonOf(err error) string {
	for _, detail := range status.Convert(err).Details() {
		if info, ok := detail.(*errdetails.ErrorInfo); ok && info.GetDomain() == Group {
			return info.GetReason()
		}
	}
	return ""
}

// explained makes sure that an error has a reason: without one of its own, its code is that.
func explained(err error) error {
	is, ok := status.FromError(err)
	if !ok || is.Code() == codes.OK {
		return err
	}
	for _, detail := range is.Details() {
		if _, has := detail.(*errdetails.ErrorInfo); has {
			return err
		}
	}
	return withReason(is, reasons[is.Code()], nil).Err()
}

// reasons are those of errors that have none of their own.
var reasons = map[codes.Code]string{
	codes.Canceled: "CANCELED", codes.Unknown: "UNKNOWN", codes.InvalidArgument: "INVALID_ARGUMENT", codes.DeadlineExceeded: "DEADLINE_EXCEEDED",
	codes.NotFound: "NOT_FOUND", codes.AlreadyExists: "ALREADY_EXISTS", codes.PermissionDenied: "PERMISSION_DENIED",
	codes.ResourceExhausted: "RESOURCE_EXHAUSTED", codes.FailedPrecondition: "FAILED_PRECONDITION", codes.Aborted: "ABORTED",
	codes.OutOfRange: "OUT_OF_RANGE", codes.Unimplemented: "UNIMPLEMENTED", codes.Internal: "INTERNAL", codes.Unavailable: "UNAVAILABLE",
	codes.DataLoss: "DATA_LOSS", codes.Unauthenticated: "UNAUTHENTICATED",
}

// asStatus makes sure that a caller gets a status, and no text of an error that was not written for callers.
func asStatus(err error) error {
	if err == nil {
		return nil
	}
	// Not errors.As: a status that was wrapped has text around it that was not written for callers.
	if is, ok := err.(interface{ GRPCStatus() *status.Status }); ok {
		return explained(bounded(is.GRPCStatus(), err))
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return explained(status.FromContextError(err).Err())
	}
	return explained(errInternal())
}

// maxText is how many bytes a message in an answer may have: it may repeat what a caller, a tenant or a member wrote.
const maxText = 4 << 10

// bounded is an error with the status is, as one line that is not too long.
func bounded(is *status.Status, err error) error {
	text := plain.Text(is.Message(), maxText)
	if text == is.Message() {
		return err
	}
	message := is.Proto()
	message.Message = text
	return status.ErrorProto(message)
}
