package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/plimsoll-dev/plimsoll/client"
	"github.com/plimsoll-dev/plimsoll/cmd/plimsoll/internal/connection"
)

// Exit codes; docs/cli.md lists them.
const (
	exitOK          = 0
	exitFailed      = 1 // anything else
	exitUsage       = 2 // a mistake in the command line
	exitDenied      = 3 // not authenticated, or not allowed
	exitNotFound    = 4 // no such member, workload or operation
	exitUnavailable = 5 // the API or a cluster does not answer
	exitOperation   = 6 // requeue --wait: the reconcile failed, or did not end in time; register --wait: a member is not ready
)

// operationError is an operation that did not come to a good end.
type operationError struct{ text string }

func (e *operationError) Error() string { return e.text }

// report prints what went wrong and what to try, and returns the exit code.
func report(to io.Writer, err error) int {
	code, text, hint := judge(err)
	fmt.Fprintf(to, "error: %s\n", text)
	if hint != "" {
		fmt.Fprintf(to, "hint: %s\n", hint)
	}
	return code
}

func judge(err error) (code int, text, hint string) {
	text = err.Error()
	var helped *connection.HintedError
	if errors.As(err, &helped) {
		hint = helped.Hint
	}
	var mistake *usageError
	var failed *operationError
	switch {
	case errors.As(err, &mistake):
		return exitUsage, text, "see " + mistake.help
	case errors.As(err, &failed):
		return exitOperation, text, hint
	case errors.Is(err, context.Canceled):
		return exitFailed, "interrupted", ""
	}
	if helped != nil {
		err = helped.Cause // whose words a status would repeat with its code before them
	}
	if answer, ok := status.FromError(err); ok {
		return judgeStatus(answer, hint)
	}
	switch {
	case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err):
		return exitDenied, text, cmp.Or(hint, "register needs cluster-admin rights in the member, and the right to write Secrets in the namespace of registrations")
	case apierrors.IsNotFound(err):
		return exitNotFound, text, hint
	case apierrors.IsTimeout(err), errors.Is(err, context.DeadlineExceeded), isNetwork(err):
		return exitUnavailable, text, cmp.Or(hint, "check that kubectl reaches the cluster with the same context")
	}
	return exitFailed, text, hint
}

// judgeStatus is for answers of the API; the API writes its messages for people.
func judgeStatus(answer *status.Status, hint string) (int, string, string) {
	text := answer.Message()
	switch answer.Code() {
	case codes.Unauthenticated:
		return exitDenied, text, cmp.Or(hint, "set a token with --token-file or PLIMSOLL_TOKEN; "+
			"`kubectl create token SERVICEACCOUNT --audience plimsoll` in the hub cluster creates one")
	case codes.PermissionDenied:
		return exitDenied, text, hint
	case codes.NotFound:
		return exitNotFound, text, hint
	case codes.Unavailable, codes.DeadlineExceeded:
		reached, why := transportHint(text)
		if reached != "" {
			text = reached
		}
		return exitUnavailable, text, cmp.Or(hint, why)
	case codes.InvalidArgument:
		return exitUsage, text, hint
	case codes.Canceled:
		return exitFailed, "interrupted", ""
	}
	return exitFailed, text, cmp.Or(hint, retryHint(answer))
}

// retryHint says when to try again, if the API does.
func retryHint(answer *status.Status) string {
	if delay, ok := client.RetryAfter(answer.Err()); ok {
		return "try again in " + duration.HumanDuration(delay)
	}
	return ""
}

// transportHint says what is probably behind an error of the connection to the API. Answers of the API itself give nothing.
func transportHint(text string) (reached, hint string) {
	switch {
	case strings.Contains(text, "first record does not look like a TLS handshake"):
		return "the API does not speak TLS there", "is it the gRPC address? For a hub on this machine that serves without TLS there is --insecure-plaintext"
	case strings.Contains(text, "error reading server preface"):
		return "the API speaks TLS there", "leave --insecure-plaintext out"
	case strings.Contains(text, "x509: certificate signed by unknown authority"), strings.Contains(text, "x509: certificate is not"):
		return "the API's certificate is not trusted: " + lastPart(text, "x509: "), "give the CA of the hub with --ca-file; the name with --tls-server-name when you reach it under another one"
	case strings.Contains(text, "x509: certificate is valid for"), strings.Contains(text, "x509: cannot validate certificate"):
		return "the API's certificate is for another name: " + lastPart(text, "x509: "), "give the name in it with --tls-server-name"
	case strings.Contains(text, "transport: Error while dialing"), strings.Contains(text, "name resolver error"):
		return "the API does not answer: " + strings.Trim(lastPart(text, "dialing: "), `"`), "is the address right (--server or PLIMSOLL_API, host:port of gRPC), and does the hub run?"
	case strings.Contains(text, "context deadline exceeded"):
		return "the API does not answer in time", "is the address right (--server or PLIMSOLL_API, host:port of gRPC)? --timeout gives it longer"
	}
	return "", ""
}

// lastPart is what follows the last mark, or all of it.
func lastPart(text, mark string) string {
	if at := strings.LastIndex(text, mark); at >= 0 {
		return strings.TrimSuffix(text[at+len(mark):], `"`)
	}
	return text
}

// isNetwork reports whether an error is that of a request that got no answer.
func isNetwork(err error) bool {
	var request *url.Error
	return errors.As(err, &request)
}
