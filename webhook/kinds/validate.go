package kinds

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/plimsoll-dev/plimsoll/clusters/plain"
	"github.com/plimsoll-dev/plimsoll/reconcile/module"
	"github.com/plimsoll-dev/plimsoll/webhook/internal/calls"
)

// validate answers whether an object of a kind, or a subresource of one, may be stored.
func validate(kind *module.Resource, body []byte) (any, string) {
	request, failed := readReview(kind, body, kind.Versions[0])
	if failed != nil {
		return failed, outcomeFailed
	}
	is, err := kind.Review(module.Review{Object: request.Object.Raw, Old: request.OldObject.Raw, Subresource: request.SubResource})
	if err != nil {
		return answerOf(&admissionv1.AdmissionResponse{UID: request.UID, Result: badRequest(err.Error())}), outcomeFailed
	}
	response := &admissionv1.AdmissionResponse{UID: request.UID, Allowed: len(is.Refusals) == 0, Warnings: boundedWarnings(is.Warnings)}
	if response.Allowed {
		return answerOf(response), outcomeOK
	}
	invalid := apierrors.NewInvalid(schema.GroupKind{Group: kind.Group, Kind: kind.Kind}, request.Name, is.Refusals)
	response.Result = bounded(&invalid.ErrStatus)
	return answerOf(response), outcomeRefused
}

// complete answers with the labels that an object of any version should have and lacks. Only its metadata is read: whether the
// rest is as it should be the API server says after us, and names field, value and rule.
func complete(kind *module.Resource, body []byte) (any, string) {
	request, failed := readReview(kind, body, kind.Versions...)
	if failed != nil {
		return failed, outcomeFailed
	}
	response := &admissionv1.AdmissionResponse{UID: request.UID, Allowed: true}
	var is metav1.PartialObjectMetadata
	if err := json.Unmarshal(request.Object.Raw, &is); err != nil {
		return answerOf(response), outcomeFailed
	}
	before := maps.Clone(is.Labels)
	if kind.Complete(&is.ObjectMeta) {
		response.PatchType = new(admissionv1.PatchTypeJSONPatch)
		response.Patch = labelPatch(before, is.Labels)
	}
	return answerOf(response), outcomeOK
}

// labelPatch sets the labels that an object lacks, or has with another value.
func labelPatch(before, after map[string]string) []byte {
	patch := []map[string]any{}
	if before == nil {
		patch = append(patch, map[string]any{"op": "add", "path": "/metadata/labels", "value": after})
	} else {
		for _, key := range slices.Sorted(maps.Keys(after)) {
			if is, there := before[key]; !there || is != after[key] {
				patch = append(patch, map[string]any{"op": "add", "path": "/metadata/labels/" + pointer.Replace(key), "value": after[key]})
			}
		}
	}
	text, _ := json.Marshal(patch) // maps of texts always can be
	return text
}

// pointer writes a key as part of a JSON pointer.
var pointer = strings.NewReplacer("~", "~0", "/", "~1")

// readReview reads an AdmissionReview about objects of certain versions of a kind, or makes the answer that refuses it.
func readReview(kind *module.Resource, body []byte, versions ...string) (request *admissionv1.AdmissionRequest, failed any) {
	var review admissionv1.AdmissionReview
	if err := json.Unmarshal(body, &review); err != nil || review.Request == nil || review.APIVersion != calls.ReviewVersion {
		return nil, answerOf(&admissionv1.AdmissionResponse{Result: badRequest("the body is not an AdmissionReview of " + calls.ReviewVersion)})
	}
	if is := review.Request.Resource; is.Group != kind.Group || !slices.Contains(versions, is.Version) || is.Resource != kind.Plural {
		return nil, answerOf(&admissionv1.AdmissionResponse{UID: review.Request.UID,
			Result: badRequest(fmt.Sprintf("resource %.64q of %.64q: must be %s of %s/%s", is.Resource, is.Group+"/"+is.Version, kind.Plural,
				kind.Group, strings.Join(versions, " or ")))})
	}
	return review.Request, nil
}

// maxCauses is how many of the causes of a refusal, and of warnings, are shown one by one.
const maxCauses = 20

// bounded shortens a status that repeats what somebody wrote.
func bounded(status *metav1.Status) *metav1.Status {
	status.Message = plain.Text(status.Message, calls.MaxMessage)
	if details := status.Details; details != nil {
		details.Name = plain.Text(details.Name, calls.MaxMessage)
		details.Causes = details.Causes[:min(len(details.Causes), maxCauses)]
		for i := range details.Causes {
			cause := &details.Causes[i]
			cause.Message, cause.Field = plain.Text(cause.Message, calls.MaxMessage), plain.Text(cause.Field, calls.MaxMessage)
		}
	}
	return status
}

// boundedWarnings shortens warnings that repeat what somebody wrote.
func boundedWarnings(warnings []string) []string {
	warnings = warnings[:min(len(warnings), maxCauses)]
	for i := range warnings {
		warnings[i] = plain.Text(warnings[i], calls.MaxMessage)
	}
	return warnings
}

func badRequest(message string) *metav1.Status {
	return &metav1.Status{Status: metav1.StatusFailure, Code: http.StatusBadRequest, Reason: metav1.StatusReasonBadRequest, Message: plain.Text(message, calls.MaxMessage)}
}

func answerOf(response *admissionv1.AdmissionResponse) any {
	return &admissionv1.AdmissionReview{TypeMeta: metav1.TypeMeta{APIVersion: calls.ReviewVersion, Kind: "AdmissionReview"}, Response: response}
}
