package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
	"github.com/plimsoll-dev/plimsoll/test/fleet"
	"github.com/plimsoll-dev/plimsoll/test/kube"
)

// A call is a whole HTTP request about a pod of one owner, but for the UID of the admission request, which is different
// each time.
type call struct {
	owner int
	bytes []byte
	uidAt int // where the UID of the admission request stands
}

// uidLength is how long UIDs are.
const uidLength = 36

// newCall writes the request for one owner: the recording with the owner's names in place of those that it was recorded
// with.
func newCall(target *url.URL, recorded *recording, number int, namespace, owner, ownerUID string) (*call, error) {
	body := bytes.Clone(recorded.body)
	for from, to := range map[string]string{
		`"` + recorded.namespace + `"`: `"` + namespace + `"`,
		recorded.owner:                 owner,
		recorded.ownerU:                ownerUID,
	} {
		body = bytes.ReplaceAll(body, []byte(from), []byte(to))
	}
	if bytes.Count(body, []byte(recorded.request)) != 1 || len(recorded.request) != uidLength {
		return nil, fmt.Errorf("the recorded call's UID %q is not there exactly once", recorded.request)
	}
	var request bytes.Buffer
	fmt.Fprintf(&request, "POST %s HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n",
		target.RequestURI(), target.Host, len(body))
	request.Write(body)
	c := &call{owner: number, bytes: request.Bytes()}
	c.uidAt = bytes.Index(c.bytes, []byte(recorded.request))
	return c, nil
}

// requestUID is a UID that no other number has.
func requestUID(into []byte, connection, number int) {
	copy(into, fmt.Appendf(nil, "%08x-0000-4000-8000-%012x", connection, number))
}

// An answer is what came back for a call, as it was received.
type answer struct {
	owner              int
	connection, number int
	body               []byte
}

// placed is what an answer says about a pod.
type placed struct {
	slot     int
	capacity string
}

// readAnswer takes an answer apart; an error says why it is no slot patch.
func readAnswer(a *answer, floor int) (placed, error) {
	var review admissionv1.AdmissionReview
	if err := json.Unmarshal(a.body, &review); err != nil {
		return placed{}, fmt.Errorf("not JSON: %w", err)
	}
	uid := make([]byte, uidLength)
	requestUID(uid, a.connection, a.number)
	response := review.Response
	switch {
	case review.Kind != "AdmissionReview" || review.APIVersion != "admission.k8s.io/v1" || response == nil:
		return placed{}, errors.New("not an AdmissionReview with a response")
	case string(response.UID) != string(uid):
		return placed{}, fmt.Errorf("the answer to %s is for %s", uid, response.UID)
	case !response.Allowed:
		return placed{}, errors.New("the pod is refused")
	case response.PatchType == nil || *response.PatchType != admissionv1.PatchTypeJSONPatch:
		return placed{}, errors.New("no JSON patch")
	}
	return readPatch(response.Patch, floor)
}

// pointer is a key as JSON pointers write it.
var pointer = strings.NewReplacer("~", "~0", "/", "~1")

func readPatch(patch []byte, floor int) (placed, error) {
	var operations []struct {
		Op, Path string
		Value    any
	}
	if err := json.Unmarshal(patch, &operations); err != nil {
		return placed{}, fmt.Errorf("patch: not JSON: %w", err)
	}
	values := map[string]string{}
	for _, operation := range operations {
		if value, ok := operation.Value.(string); ok && (operation.Op == "add" || operation.Op == "replace") {
			values[operation.Path] = value
		}
	}
	text := values["/metadata/labels/"+pointer.Replace(fleet.Keys.Slot())]
	slot, err := strconv.Atoi(text)
	switch {
	case err != nil || slot < 0:
		return placed{}, fmt.Errorf("patch: slot %q", text)
	case values["/metadata/annotations/"+pointer.Replace(policy.DeletionCost)] != policy.Mix{Floor: floor}.Cost(slot):
		return placed{}, fmt.Errorf("patch: the deletion cost does not fit slot %d", slot)
	case values["/metadata/annotations/"+pointer.Replace(fleet.Keys.Reservation())] == "":
		return placed{}, errors.New("patch: no reservation")
	}
	return placed{slot: slot, capacity: values["/spec/nodeSelector/"+pointer.Replace(kube.CapacityLabel)]}, nil
}

// checkAnswers checks every answer, and that no owner was given a slot twice.
func checkAnswers(answers []answer, percent, floor int) error {
	type key struct{ owner, slot int }
	given := make(map[key]bool, len(answers))
	for i := range answers {
		got, err := readAnswer(&answers[i], floor)
		if err != nil {
			return fmt.Errorf("answer %d: %w: %s", i, err, answers[i].body)
		}
		if given[key{answers[i].owner, got.slot}] {
			return fmt.Errorf("answer %d: slot %d of owner %d is given out twice", i, got.slot, answers[i].owner)
		}
		given[key{answers[i].owner, got.slot}] = true
		if want := slotCapacity(got.slot, percent, floor); got.capacity != want {
			return fmt.Errorf("answer %d: slot %d is for %s and was put on %q", i, got.slot, want, got.capacity)
		}
	}
	return nil
}

// slotCapacity is where the formula wants a slot: where the replica goes by which the slot is reached.
func slotCapacity(slot, percent, floor int) string {
	before, _ := fleet.Want(slot, percent, floor)
	after, _ := fleet.Want(slot+1, percent, floor)
	if after > before {
		return kube.Spot
	}
	return kube.OnDemand
}
