package clusters

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"syscall"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/plimsoll-dev/plimsoll/clusters/internal/intake"
	"github.com/plimsoll-dev/plimsoll/clusters/kubeconfig"
)

// Reasons of a member's state Unreachable, beside those of [RefusedError].
const (
	ReasonConnectionRefused = "ConnectionRefused" // nothing listens at the server's address
	ReasonTimeout           = "Timeout"           // the API server did not answer in time
	ReasonNameNotResolved   = "NameNotResolved"   // DNS does not resolve the server's name
	ReasonTLSFailed         = "TLSFailed"         // the TLS handshake failed, and not because of an untrusted certificate
	ReasonConnectionFailed  = "ConnectionFailed"  // the connection failed for another reason, which the message has
	ReasonNotReady          = "NotReady"          // the API server answers that it is not ready
	ReasonOtherCluster      = "OtherCluster"      // the cluster at the address is not the one that was there before
)

// problem is why a member cannot be worked in. Its message is made of our own words, codes and addresses only: a member
// that was sent a token can say it back, so nothing that a member says is repeated.
type problem struct {
	state           State
	reason, message string
	rival           string // the registration that stands in the way; for the hub's own people only
}

func refused(reason, message string) *problem {
	return &problem{state: StateRefused, reason: reason, message: message}
}

func unreachable(reason, message string) *problem {
	return &problem{state: StateUnreachable, reason: reason, message: message}
}

// classify turns the error of a probe into a problem.
func classify(err error) *problem {
	var refusal *kubeconfig.RefusedError
	var addr *kubeconfig.AddrError
	var status apierrors.APIStatus
	switch {
	case errors.As(err, &refusal):
		return refused(refusal.Reason, refusal.Message)
	case errors.As(err, &addr):
		return refused(kubeconfig.ReasonServerNotAllowed, "the server's "+addr.Error())
	case errors.As(err, &status):
		return classifyStatus(int(status.Status().Code))
	}
	if p := classifyTLS(err); p != nil {
		return p
	}
	return classifyConnection(err)
}

// classifyStatus judges an HTTP status other than success.
func classifyStatus(code int) *problem {
	if code == http.StatusUnauthorized {
		return refused(kubeconfig.ReasonUnauthorized, "the member's API server does not accept the credentials (401): they are wrong, expired or revoked")
	}
	return unreachable(ReasonNotReady, fmt.Sprintf("the member's API server is not ready: it answers %d", code))
}

// classifyTLS judges what went wrong in a TLS handshake, or returns nil.
func classifyTLS(err error) *problem {
	var alert tls.AlertError
	var record tls.RecordHeaderError
	var hostname x509.HostnameError
	var verification *tls.CertificateVerificationError
	var remote *net.OpError
	switch {
	case errors.As(err, &hostname):
		return refused(kubeconfig.ReasonCertificateNotTrusted, "the server's certificate is not for its host name; check server and tls-server-name")
	case errors.As(err, &verification):
		return refused(kubeconfig.ReasonCertificateNotTrusted, "the server's certificate is not trusted: "+verificationFault(verification.Err))
	case errors.As(err, &record), strings.Contains(err.Error(), "server gave HTTP response to HTTPS client"):
		return unreachable(ReasonTLSFailed, "the server does not speak TLS")
	case errors.As(err, &remote) && remote.Op == "remote error", errors.As(err, &alert):
		return refused(kubeconfig.ReasonUnauthorized, "the server ended the TLS handshake: it does not accept the client certificate")
	}
	return nil
}

// verificationFault says in our own words why a certificate was not accepted.
func verificationFault(err error) string {
	var invalid x509.CertificateInvalidError
	if errors.As(err, &invalid) && invalid.Reason == x509.Expired {
		return "it has expired or is not yet valid"
	}
	var unknown x509.UnknownAuthorityError
	if errors.As(err, &unknown) {
		return "it is not signed by the certificate authority of the kubeconfig"
	}
	return "it is not valid"
}

// classifyConnection judges what went wrong below TLS.
func classifyConnection(err error) *problem {
	var dns *net.DNSError
	var timeout interface{ Timeout() bool }
	switch {
	case errors.As(err, &dns) && !dns.IsTimeout:
		return unreachable(ReasonNameNotResolved, "the server's name cannot be resolved")
	case errors.Is(err, syscall.ECONNREFUSED):
		return unreachable(ReasonConnectionRefused, "the server refuses connections")
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return unreachable(ReasonTimeout, "the server does not answer in time")
	case errors.Is(err, intake.ErrTooLarge):
		return unreachable(ReasonNotReady, "the server's answer is too large to be an API server's")
	}
	return unreachable(ReasonConnectionFailed, "the connection to the server fails")
}
