package api

import (
	"context"
	"errors"
	"fmt"

	"buf.build/go/protovalidate"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

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
	return status.Errorf(codes.NotFound, "member %q: no registration Secret has that name", member)
}

// asStatus makes sure that a caller gets a status, and no text of an error that was not written for callers.
func asStatus(err error) error {
	if err == nil {
		return nil
	}
	// Not errors.As: a status that was wrapped has text around it that was not written for callers.
	if is, ok := err.(interface{ GRPCStatus() *status.Status }); ok {
		return bounded(is.GRPCStatus(), err)
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return status.FromContextError(err).Err()
	}
	return errInternal()
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
