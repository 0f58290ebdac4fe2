package kinds

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plimsoll-dev/plimsoll/clusters/plain"
	"github.com/plimsoll-dev/plimsoll/webhook/internal/calls"
)

const (
	conversionVersion = "apiextensions.k8s.io/v1"
	// answerBuffer is how much of an answer is gathered before it is sent.
	answerBuffer = 32 << 10
	// maxConverted is how many bytes of converted objects are kept for an answer. An object in an older version carries what only the
	// stored one has, so it is larger; what is made to be small and to become large is refused.
	maxConverted = 3 * maxConversion
	// Of one call it is so many times what the call has, and convertedAtLeast.
	convertedFactor, convertedAtLeast = 6, 2 << 20
)

// serveConversion answers a ConversionReview. Either all objects are converted, in their order, or the answer is a failure that
// says which could not be. Only what was converted is kept: a review that is refused early has taken no memory. It returns false
// for a failure as well: what is left of the body ends the connection.
func (h *Handler) serveConversion(w http.ResponseWriter, r *http.Request, call asking) bool {
	var converted [][]byte
	size, most := 0, min(maxConverted, max(convertedFactor*int(r.ContentLength), convertedAtLeast))
	review, err := readConversion(r.Body, func(c *conversionReader, i int, object []byte) error {
		if err := h.turns.converts(r.PathValue("member"), i, len(object), r.ContentLength > calls.LargeCall); err != nil {
			return fmt.Errorf("objects[%d]: %w", i, err)
		}
		is, err := h.convert(call, object, c.desiredAPIVersion)
		if err != nil {
			return fmt.Errorf("objects[%d]: %w", i, err)
		}
		if size += len(is); size > most {
			return fmt.Errorf("objects[%d]: with it what was converted has more than %d bytes: ask for fewer objects at a time", i, most)
		}
		converted = append(converted, is)
		return nil
	})
	if status := statusOf(err); status != 0 {
		h.reject(w, call, status)
		return false
	}
	outcome := outcomeOK
	if err != nil {
		outcome, converted = outcomeFailed, nil
	}
	h.answered.WithLabelValues(call.kind, call.call, outcome).Inc()
	w.Header().Set("Content-Type", "application/json")
	_ = writeConversion(w, review.uid, converted, err) // who called may be gone
	return err == nil
}

// statusOf is the HTTP status for a body that could not be read; 0: what is wrong, if anything, the answer says.
func statusOf(err error) int {
	switch tooLarge := (*http.MaxBytesError)(nil); {
	case errors.As(err, &tooLarge):
		return http.StatusRequestEntityTooLarge
	case errors.Is(err, errUnread):
		return http.StatusBadRequest
	}
	return 0
}

// writeConversion writes the answer object by object: as one value, it would take as much memory once more.
func writeConversion(w io.Writer, uid string, converted [][]byte, failure error) error {
	result := metav1.Status{Status: metav1.StatusSuccess}
	if failure != nil {
		result = metav1.Status{Status: metav1.StatusFailure, Message: plain.Text(failure.Error(), calls.MaxMessage)}
	}
	head, err := json.Marshal(uid)
	if err != nil {
		return err
	}
	tail, err := json.Marshal(result)
	if err != nil {
		return err
	}
	out := bufio.NewWriterSize(w, answerBuffer)
	fmt.Fprintf(out, `{"kind":"ConversionReview","apiVersion":%q,"response":{"uid":%s,"convertedObjects":[`, conversionVersion, head)
	for i, object := range converted {
		if i > 0 {
			_ = out.WriteByte(',') // Flush has the error
		}
		_, _ = out.Write(object)
	}
	fmt.Fprintf(out, `],"result":%s}}`, tail)
	return out.Flush()
}

// convert rewrites an object in another version of its kind. A panic in that costs the call, not the connection with all that
// is on it.
func (h *Handler) convert(call asking, object []byte, desiredAPIVersion string) (converted []byte, err error) {
	defer func() {
		if p := recover(); p != nil {
			h.logPanic(call)
			converted, err = nil, errors.New("the conversion failed in the hub, whose log has the details")
		}
	}()
	defer h.oneIfLarge(len(object))()
	if err := h.makeSafe(object, maxObject); err != nil {
		return nil, err
	}
	var is metav1.TypeMeta
	if err := json.Unmarshal(object, &is); err != nil {
		return nil, errors.New("not a Kubernetes object")
	}
	for i := range h.kinds {
		if kind := &h.kinds[i]; kind.Convert != nil && kind.Kind == is.Kind && kind.IsOf(is.APIVersion) {
			return kind.Convert(object, desiredAPIVersion)
		}
	}
	return nil, fmt.Errorf("kind: %.64q of %.64q: is not a kind that this hub converts", is.Kind, is.APIVersion)
}
