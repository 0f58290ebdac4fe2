package calls

import (
	"errors"
	"net/http"
	"strings"
)

const (
	// MaxBody is the largest call that is read; Kubernetes' own limit for an object is half of it.
	MaxBody = 3 << 20
	// MaxMessage is how many bytes a message may have that is shown to whoever sent the object, or about a member; it may repeat
	// what they wrote.
	MaxMessage = 2 << 10
	// Timeout is how many seconds an API server waits for us before it continues without us.
	Timeout = 2
	// ReviewVersion is that of the AdmissionReviews that are read and written.
	ReviewVersion = "admission.k8s.io/v1"
)

// RefusedLength is the HTTP status to refuse a call with before it is read, by the length that it says to have; 0: it is read.
// API servers always say it, and what says nothing would be reckoned with as the largest.
func RefusedLength(length, limit int64) (status int) {
	switch {
	case length < 0:
		return http.StatusLengthRequired
	case length > limit:
		return http.StatusRequestEntityTooLarge
	}
	return 0
}

// WithoutToken hides tokens in an error: an API server that refuses a configuration quotes its URLs. Such an error is cut off
// from what it wraps, which would still quote them.
func WithoutToken(err error, tokens ...string) error {
	text := err.Error()
	for _, token := range tokens {
		text = strings.ReplaceAll(text, token, "<token>")
	}
	if text != err.Error() {
		return errors.New(text)
	}
	return err
}
