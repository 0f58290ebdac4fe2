package kinds

import (
	"encoding/json"
	"errors"
	"fmt"

	admissionv1 "k8s.io/api/admission/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"

	"github.com/plimsoll-dev/plimsoll/clusters/quantities"
	"github.com/plimsoll-dev/plimsoll/reconcile/module"
)

// decodedPerByte is how many times more memory a call may take once it is decoded than it may have bytes.
const decodedPerByte = 3

// pathsOf are the paths of all that is decoded of calls about kinds.
func pathsOf(kinds []module.Resource) (*quantities.Paths, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{admissionv1.AddToScheme, apiextensionsv1.AddToScheme} {
		utilruntime.Must(add(scheme)) // fails only for types that are no objects
	}
	for i := range kinds {
		if err := kinds[i].AddToScheme(scheme); err != nil {
			return nil, fmt.Errorf("kind %s: %w", kinds[i].Plural, err)
		}
	}
	return quantities.NewPaths(scheme), nil
}

// makeSafe bounds the quantities in the body of a call about a kind, or in an object of one, and refuses what would take too
// much memory. What is no JSON passes: of that, decoders read nothing.
func (h *Handler) makeSafe(body []byte, limit int64) error {
	err := h.paths.JSON(body, quantities.Limits{Memory: int(decodedPerByte * limit)})
	if errors.Is(err, quantities.ErrMalformed) && !json.Valid(body) {
		return nil
	}
	return err
}
