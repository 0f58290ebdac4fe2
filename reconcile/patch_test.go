package reconcile

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// patched is an API server with one Deployment of two containers, and counts what it is sent.
func patched(t *testing.T) (c client.Client, sent *atomic.Int32, d *appsv1.Deployment) {
	t.Helper()
	d = deployment("web")
	d.UID = "u"
	d.Spec.Template.Spec.Containers = []corev1.Container{{Name: "a", Image: "a:1"}, {Name: "b", Image: "b:1"}}
	sent = &atomic.Int32{}
	c = fake.NewClientBuilder().WithObjects(d).WithInterceptorFuncs(interceptor.Funcs{
		Patch: func(ctx context.Context, w client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
			sent.Add(1)
			return w.Patch(ctx, obj, patch, opts...)
		},
	}).Build()
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(d), d); err != nil {
		t.Fatal(err)
	}
	return c, sent, d
}

func image(t *testing.T, c client.Client, container string) string {
	t.Helper()
	var d appsv1.Deployment
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "web"}, &d); err != nil {
		t.Fatal(err)
	}
	for _, one := range d.Spec.Template.Spec.Containers {
		if one.Name == container {
			return one.Image
		}
	}
	return "none"
}

// somebody changes container b behind the back of whoever holds an older copy.
func somebody(t *testing.T, c client.Client) {
	t.Helper()
	var d appsv1.Deployment
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "web"}, &d); err != nil {
		t.Fatal(err)
	}
	d.Spec.Template.Spec.Containers[1].Image = "b:2"
	if err := c.Update(t.Context(), &d); err != nil {
		t.Fatal(err)
	}
}

func TestAPatchOfNothingIsNotSent(t *testing.T) {
	c, sent, d := patched(t)
	same := func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Image = "a:1" }
	for _, opts := range [][]PatchOption{nil, {Locked()}} {
		if changed, err := PatchMerge(t.Context(), c, d, same, opts...); changed || err != nil || sent.Load() != 0 {
			t.Errorf("changed %v, %v, sent %d", changed, err, sent.Load())
		}
	}
}

func TestAMergePatchChangesTheWholeListUnlessItIsLocked(t *testing.T) {
	newer := func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Image = "a:2" }
	c, sent, d := patched(t)
	somebody(t, c)
	if changed, err := PatchMerge(t.Context(), c, d, newer); !changed || err != nil || sent.Load() != 1 || image(t, c, "a") != "a:2" || image(t, c, "b") != "b:1" {
		t.Errorf("merge: changed %v, %v: a is %s, b is %s: this is why such a patch should be locked", changed, err, image(t, c, "a"), image(t, c, "b"))
	}
	c, _, d = patched(t)
	somebody(t, c)
	if _, err := PatchMerge(t.Context(), c, d, newer, Locked()); !apierrors.IsConflict(err) || image(t, c, "b") != "b:2" ||
		!strings.Contains(err.Error(), "patch apps/v1 Deployment default/web: ") {
		t.Errorf("locked merge: %v: b is %s", err, image(t, c, "b"))
	}
}
