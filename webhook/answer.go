package webhook

import (
	"encoding/base64"

	"github.com/plimsoll-dev/plimsoll/webhook/internal/calls"
	"github.com/plimsoll-dev/plimsoll/webhook/internal/jsonscan"
)

// appendAnswer appends the AdmissionReview that lets a pod through, with a JSON patch if there is one. It never refuses
// and never warns: placement is no reason to keep a pod from being made.
func appendAnswer(into []byte, uid string, patch []byte) []byte {
	into = append(into, `{"kind":"AdmissionReview","apiVersion":"`+calls.ReviewVersion+`","response":{"uid":"`...)
	into = append(into, uid...)
	into = append(into, `","allowed":true`...)
	if len(patch) > 0 {
		into = append(into, `,"patchType":"JSONPatch","patch":"`...)
		into = base64.StdEncoding.AppendEncode(into, patch)
		into = append(into, '"')
	}
	return append(into, `}}`...)
}

// plainUID reports whether a UID can be written between quotes as it is. API servers send hexadecimal digits and dashes.
func plainUID(uid string) bool {
	return uid != "" && len(uid) <= 128 && jsonscan.PlainUntil([]byte(uid), 0, jsonscan.HighBits) == len(uid)
}
