package hub

import (
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"

	fleetv1alpha1 "github.com/plimsoll-dev/plimsoll/reconcile/fleet/v1alpha1"
)

// newScheme knows the kinds of all controllers. It is not changed once it is made.
func newScheme(modules []Module) (*runtime.Scheme, error) {
	all := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme, fleetv1alpha1.AddToScheme} {
		utilruntime.Must(add(all)) // Kubernetes' own and ours, which do not clash
	}
	for i := range modules {
		if modules[i].AddToScheme == nil {
			continue
		}
		if err := modules[i].AddToScheme(all); err != nil {
			return nil, fmt.Errorf("module %q: kinds: %w", modules[i].Name, err)
		}
	}
	return all, nil
}
