package hub

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"

	webappv1 "github.com/plimsoll-dev/plimsoll/reconcile/webapp/v1"
)

// knownKinds knows the kinds of all controllers. It is not changed once it is made.
var knownKinds = newScheme()

func newScheme() *runtime.Scheme {
	all := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme, webappv1.AddToScheme} {
		utilruntime.Must(add(all)) // kinds of two packages that clash: a programming error
	}
	return all
}
