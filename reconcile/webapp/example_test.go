package webapp_test

import (
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plimsoll-dev/plimsoll/reconcile/webapp"
	v1 "github.com/plimsoll-dev/plimsoll/reconcile/webapp/v1"
)

// A WebApp that names an image and nothing else is refused where images must be pinned.
func ExamplePolicy_Review() {
	app := &v1.WebApp{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "cart"},
		Spec:       v1.WebAppSpec{Containers: []v1.Container{{Name: "cart", Image: "images.example.com/cart"}}},
	}
	strict := webapp.Policy{Images: webapp.ImagesDenied, MaxReplicas: 100}
	refusals, _ := strict.Review(app, nil)
	for _, refusal := range refusals {
		fmt.Println(refusal.Field)
	}
	app.Spec.Containers[0].Image += ":1.4"
	refusals, _ = strict.Review(app, nil)
	fmt.Println(len(refusals))
	// Output:
	// spec.containers[0].image
	// 0
}

// What a WebApp of an older version is in the version that is stored.
func ExampleConvert() {
	old := `{"apiVersion": "apps.plimsoll.dev/v1alpha1", "kind": "WebApp", "metadata": {"namespace": "shop", "name": "cart"},
		"spec": {"image": "images.example.com/cart:1.4", "replicas": 3}}`
	converted, err := webapp.Convert([]byte(old), v1.GroupVersion.String())
	if err != nil {
		fmt.Println(err)
		return
	}
	var app v1.WebApp
	if err := json.Unmarshal(converted, &app); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(app.APIVersion, app.Spec.Containers[0].Image, *app.Spec.Replicas)
	// Output: apps.plimsoll.dev/v1 images.example.com/cart:1.4 3
}
