package webhook

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/plimsoll-dev/plimsoll/clusters/plain"
	"github.com/plimsoll-dev/plimsoll/reconcile/webapp"
	v1 "github.com/plimsoll-dev/plimsoll/reconcile/webapp/v1"
)

// A Reviewer judges WebApps; [webapp.Policy] is one.
type Reviewer interface {
	Review(app, old *v1.WebApp) (refusals field.ErrorList, warnings []string)
	ReviewScale(replicas int32) field.ErrorList
}

// validate answers whether a WebApp, or a number of replicas for one, may be stored.
func (h *KindHandler) validate(body []byte) (any, string) {
	request, failed := readReview(body, v1.GroupVersion.Version)
	if failed != nil {
		return failed, outcomeFailed
	}
	name := request.Name
	var refusals field.ErrorList
	var warnings []string
	if request.SubResource == "scale" {
		var scale autoscalingv1.Scale
		if err := json.Unmarshal(request.Object.Raw, &scale); err != nil {
			return noWebApp(request, "object"), outcomeFailed
		}
		refusals = h.review.ReviewScale(scale.Spec.Replicas)
	} else {
		app, old := &v1.WebApp{}, (*v1.WebApp)(nil)
		if err := readWebApp(request.Object.Raw, app); err != nil {
			return noWebApp(request, "object"), outcomeFailed
		}
		if len(request.OldObject.Raw) > 0 {
			old = &v1.WebApp{}
			if err := readWebApp(request.OldObject.Raw, old); err != nil {
				return noWebApp(request, "oldObject"), outcomeFailed
			}
		}
		refusals, warnings = h.review.Review(app, old)
	}
	response := &admissionv1.AdmissionResponse{UID: request.UID, Allowed: len(refusals) == 0, Warnings: boundedWarnings(warnings)}
	if response.Allowed {
		return answerOf(response), outcomeOK
	}
	invalid := apierrors.NewInvalid(v1.GroupVersion.WithKind(v1.Kind).GroupKind(), name, refusals)
	response.Result = bounded(&invalid.ErrStatus)
	return answerOf(response), outcomeRefused
}

// complete answers with what a WebApp of any version should have and does not say. Only its metadata is read: whether the
// rest is as it should be the API server says after us, and names field, value and rule.
func (h *KindHandler) complete(body []byte) (any, string) {
	request, failed := readReview(body, webAppVersions()...)
	if failed != nil {
		return failed, outcomeFailed
	}
	response := &admissionv1.AdmissionResponse{UID: request.UID, Allowed: true}
	var is metav1.PartialObjectMetadata
	if err := json.Unmarshal(request.Object.Raw, &is); err != nil {
		return answerOf(response), outcomeFailed
	}
	before, app := is.Labels != nil, &v1.WebApp{ObjectMeta: is.ObjectMeta}
	if webapp.Complete(app) {
		response.PatchType = new(admissionv1.PatchTypeJSONPatch)
		response.Patch = labelPatch(before, app.Labels)
	}
	return answerOf(response), outcomeOK
}

// labelPatch sets the labels that an object lacks.
func labelPatch(before bool, labels map[string]string) []byte {
	patch := []map[string]any{{"op": "add", "path": "/metadata/labels", "value": labels}}
	if before {
		patch = []map[string]any{{"op": "add", "path": "/metadata/labels/app.kubernetes.io~1name", "value": labels[webapp.LabelName]}}
	}
	text, _ := json.Marshal(patch) // maps of texts always can be
	return text
}

// readReview reads an AdmissionReview about WebApps of certain versions, or makes the answer that refuses it.
func readReview(body []byte, versions ...string) (request *admissionv1.AdmissionRequest, failed any) {
	var review admissionv1.AdmissionReview
	if err := json.Unmarshal(body, &review); err != nil || review.Request == nil || review.APIVersion != reviewVersion {
		return nil, answerOf(&admissionv1.AdmissionResponse{Result: badRequest("the body is no AdmissionReview of " + reviewVersion)})
	}
	if is := review.Request.Resource; is.Group != v1.GroupVersion.Group || !slices.Contains(versions, is.Version) || is.Resource != "webapps" {
		return nil, answerOf(&admissionv1.AdmissionResponse{UID: review.Request.UID,
			Result: badRequest(fmt.Sprintf("resource %.64q of %.64q: must be webapps of %s/%s", is.Resource, is.Group+"/"+is.Version,
				v1.GroupVersion.Group, strings.Join(versions, " or ")))})
	}
	return review.Request, nil
}

// readWebApp reads one with its defaults, which an API server has set already.
func readWebApp(raw []byte, into *v1.WebApp) error {
	if err := json.Unmarshal(raw, into); err != nil {
		return err
	}
	into.Spec.SetDefaults()
	return nil
}

const (
	// maxMessage is how many bytes a message may have that is shown to whoever sent the WebApp, or about a member; it may repeat
	// what they wrote. At most maxCauses of the causes of a refusal, and of warnings, are shown one by one.
	maxMessage, maxCauses = 2 << 10, 20
)

// bounded shortens a status that repeats what somebody wrote.
func bounded(status *metav1.Status) *metav1.Status {
	status.Message = plain.Text(status.Message, maxMessage)
	if details := status.Details; details != nil {
		details.Name = plain.Text(details.Name, maxMessage)
		details.Causes = details.Causes[:min(len(details.Causes), maxCauses)]
		for i := range details.Causes {
			cause := &details.Causes[i]
			cause.Message, cause.Field = plain.Text(cause.Message, maxMessage), plain.Text(cause.Field, maxMessage)
		}
	}
	return status
}

// boundedWarnings shortens warnings that repeat what somebody wrote.
func boundedWarnings(warnings []string) []string {
	warnings = warnings[:min(len(warnings), maxCauses)]
	for i := range warnings {
		warnings[i] = plain.Text(warnings[i], maxMessage)
	}
	return warnings
}

func noWebApp(request *admissionv1.AdmissionRequest, what string) any {
	return answerOf(&admissionv1.AdmissionResponse{UID: request.UID, Result: badRequest(what + ": no WebApp can be read from it")})
}

func badRequest(message string) *metav1.Status {
	return &metav1.Status{Status: metav1.StatusFailure, Code: http.StatusBadRequest, Reason: metav1.StatusReasonBadRequest, Message: plain.Text(message, maxMessage)}
}

func answerOf(response *admissionv1.AdmissionResponse) any {
	return &admissionv1.AdmissionReview{TypeMeta: metav1.TypeMeta{APIVersion: reviewVersion, Kind: "AdmissionReview"}, Response: response}
}
