package webhook

import (
	"encoding/json"
	"errors"
	"sync"

	admissionv1 "k8s.io/api/admission/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"

	"github.com/plimsoll-dev/plimsoll/clusters/quantities"
	v1 "github.com/plimsoll-dev/plimsoll/reconcile/webapp/v1"
	"github.com/plimsoll-dev/plimsoll/reconcile/webapp/v1alpha1"
	"github.com/plimsoll-dev/plimsoll/reconcile/webapp/v1beta1"
)

// decodedPerByte is how many times more memory a call may take once it is decoded than it may have bytes.
const decodedPerByte = 3

// asked are the shapes of all that is decoded of calls about WebApps.
var asked = sync.OnceValue(func() *quantities.Shapes {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		admissionv1.AddToScheme, apiextensionsv1.AddToScheme, v1.AddToScheme, v1beta1.AddToScheme, v1alpha1.AddToScheme,
	} {
		utilruntime.Must(add(scheme)) // fails only for types that are no objects
	}
	return quantities.NewShapes(scheme)
})

// makeSafe bounds the quantities in the body of a call about WebApps, and refuses one that would take too much memory. What is
// no JSON passes: of that, decoders read nothing.
func makeSafe(body []byte, limit int64) error {
	err := asked().JSON(body, quantities.Limits{Memory: int(decodedPerByte * limit)})
	if errors.Is(err, quantities.ErrMalformed) && !json.Valid(body) {
		return nil
	}
	return err
}
