package retry

import (
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// terminalError is an error that no retry can fix.
type terminalError struct{ err error }

func (e *terminalError) Error() string { return e.err.Error() }
func (e *terminalError) Unwrap() error { return e.err }

// Terminal marks an error that no retry can fix; nil stays nil.
func Terminal(err error) error {
	if err == nil {
		return nil
	}
	return &terminalError{err}
}

// IsTerminal reports whether err, or an error it wraps, is marked.
func IsTerminal(err error) bool {
	var t *terminalError
	return errors.As(err, &t)
}

// Refused marks the answer of an API server that no retry can fix as terminal: what is sent is not valid or not allowed. A
// quota that is used up is one of these, and so is a namespace that is being deleted.
func Refused(err error) error {
	switch {
	case err == nil || IsTerminal(err):
		return err
	case apierrors.IsInvalid(err), apierrors.IsForbidden(err), apierrors.IsBadRequest(err), apierrors.IsMethodNotSupported(err),
		apierrors.IsNotAcceptable(err), apierrors.IsUnsupportedMediaType(err), apierrors.IsRequestEntityTooLargeError(err):
		return Terminal(err)
	}
	return err
}
