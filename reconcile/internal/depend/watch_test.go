package depend

import (
	"context"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// API servers do not heed the limit of a list of version 0, so a namespace with many Secrets would come whole.
func TestAListIsAskedForInPages(t *testing.T) {
	for asked, want := range map[string]string{"0": "", "": "", "7": "7"} {
		var got *metav1.ListOptions
		source := fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{
			List: func(_ context.Context, _ client.WithWatch, _ client.ObjectList, options ...client.ListOption) error {
				got = (&client.ListOptions{}).ApplyOptions(options).AsListOptions()
				return nil
			},
		}).Build()
		w := &placeWatch{place: place{gvk: secretKind, namespace: "shop"}}
		lister, ok := w.listWatch(source).(pagedListWatch)
		if !ok {
			t.Fatal("it may stream lists")
		}
		if _, err := lister.ListWithContext(t.Context(), metav1.ListOptions{ResourceVersion: asked, Limit: 500}); err != nil {
			t.Fatal(err)
		}
		if got.ResourceVersion != want || got.Limit != 500 {
			t.Errorf("version %q: asked for version %q and %d objects, want %q and 500", asked, got.ResourceVersion, got.Limit, want)
		}
	}
}
