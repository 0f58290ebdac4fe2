package apply

import (
	"bytes"

	jsonpatch "github.com/evanphx/json-patch/v5"
)

// Pending is the JSON merge patch (RFC 7386) that does to an object what happened between two others, without what the object
// shows already; "{}": it shows all of it. All are JSON objects.
func Pending(has, was, is []byte) ([]byte, error) {
	happened, err := jsonpatch.CreateMergePatch(was, is)
	if err != nil || bytes.Equal(has, was) {
		return happened, err
	}
	wanted, err := jsonpatch.MergePatch(has, happened)
	if err != nil {
		return nil, err
	}
	return jsonpatch.CreateMergePatch(has, wanted)
}
