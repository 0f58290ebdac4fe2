package webhook

import (
	"encoding/json"
	"errors"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plimsoll-dev/plimsoll/clusters/plain"
)

const conversionVersion = "apiextensions.k8s.io/v1"

// convertReview answers a ConversionReview. Either all objects are converted, in their order, or the answer is a failure
// that says which could not be.
func (h *KindHandler) convertReview(body []byte) (any, string) {
	var review apiextensionsv1.ConversionReview
	if err := json.Unmarshal(body, &review); err != nil {
		return conversionFailed("", "the body is no ConversionReview"), outcomeFailed
	}
	if review.APIVersion != conversionVersion || review.Kind != "ConversionReview" || review.Request == nil {
		return conversionFailed("", fmt.Sprintf("%.64q %.64q: must be a ConversionReview of %s with a request", review.APIVersion, review.Kind, conversionVersion)), outcomeFailed
	}
	request := review.Request
	converted := make([]runtime.RawExtension, 0, len(request.Objects))
	for i := range request.Objects {
		object, err := h.convert(request.Objects[i].Raw, request.DesiredAPIVersion)
		if err != nil {
			return conversionFailed(request.UID, fmt.Sprintf("objects[%d]: %v", i, err)), outcomeFailed
		}
		converted = append(converted, runtime.RawExtension{Raw: object})
	}
	return conversion(apiextensionsv1.ConversionResponse{
		UID: request.UID, ConvertedObjects: converted, Result: metav1.Status{Status: metav1.StatusSuccess},
	}), outcomeOK
}

// convert rewrites an object in another version of its kind.
func (h *KindHandler) convert(object []byte, desiredAPIVersion string) ([]byte, error) {
	var is metav1.TypeMeta
	if err := json.Unmarshal(object, &is); err != nil {
		return nil, errors.New("not a Kubernetes object")
	}
	for i := range h.kinds {
		if kind := &h.kinds[i]; kind.Convert != nil && kind.Kind == is.Kind && kind.IsOf(is.APIVersion) {
			return kind.Convert(object, desiredAPIVersion)
		}
	}
	return nil, fmt.Errorf("kind: %.64q of %.64q: is none that this hub converts", is.Kind, is.APIVersion)
}

func conversionFailed(uid types.UID, message string) any {
	return conversion(apiextensionsv1.ConversionResponse{
		UID: uid, ConvertedObjects: []runtime.RawExtension{}, Result: metav1.Status{Status: metav1.StatusFailure, Message: plain.Text(message, maxMessage)},
	})
}

func conversion(response apiextensionsv1.ConversionResponse) any {
	return &apiextensionsv1.ConversionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: conversionVersion, Kind: "ConversionReview"}, Response: &response,
	}
}
