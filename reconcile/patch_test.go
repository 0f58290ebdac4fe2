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
	for name, patch := range map[string]func() (bool, error){
		"merge":     func() (bool, error) { return PatchMerge(t.Context(), c, d, same, Locked()) },
		"strategic": func() (bool, error) { return PatchStrategic(t.Context(), c, d, same, Locked()) },
		"JSON":      func() (bool, error) { return false, PatchJSON(t.Context(), c, d) },
	} {
		if changed, err := patch(); changed || err != nil || sent.Load() != 0 {
			t.Errorf("%s: changed %v, %v, sent %d", name, changed, err, sent.Load())
		}
	}
}

func TestAStrategicPatchChangesOneElementAndAMergePatchTheList(t *testing.T) {
	newer := func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Image = "a:2" }
	c, _, d := patched(t)
	somebody(t, c)
	if changed, err := PatchStrategic(t.Context(), c, d, newer); !changed || err != nil || image(t, c, "a") != "a:2" || image(t, c, "b") != "b:2" {
		t.Errorf("strategic: changed %v, %v: a is %s, b is %s", changed, err, image(t, c, "a"), image(t, c, "b"))
	}
	if d.Spec.Template.Spec.Containers[1].Image != "b:2" {
		t.Error("the object is not brought up to date")
	}
	c, _, d = patched(t)
	somebody(t, c)
	if _, err := PatchMerge(t.Context(), c, d, newer); err != nil || image(t, c, "b") != "b:1" {
		t.Errorf("merge: %v: b is %s: this is why such a patch should be locked", err, image(t, c, "b"))
	}
	c, _, d = patched(t)
	somebody(t, c)
	if _, err := PatchMerge(t.Context(), c, d, newer, Locked()); !apierrors.IsConflict(err) || image(t, c, "b") != "b:2" ||
		!strings.Contains(err.Error(), "patch apps/v1 Deployment default/web: ") {
		t.Errorf("locked merge: %v: b is %s", err, image(t, c, "b"))
	}
	c, _, d = patched(t)
	somebody(t, c)
	if _, err := PatchStrategic(t.Context(), c, d, newer, Locked()); !apierrors.IsConflict(err) {
		t.Errorf("locked strategic: %v", err)
	}
}

func TestAJSONPatchHappensOnlyToWhatWasSeen(t *testing.T) {
	const path = "/spec/template/spec/containers/1/image"
	c, _, d := patched(t)
	if err := PatchJSON(t.Context(), c, d, JSONTest(path, "b:1"), JSONReplace(path, "b:3"), JSONAdd("/metadata/labels", map[string]string{}),
		JSONAdd(JSONPath("metadata", "labels", "x/y~z"), "1")); err != nil || image(t, c, "b") != "b:3" || d.Labels["x/y~z"] != "1" {
		t.Errorf("%v: b is %s, labels %v", err, image(t, c, "b"), d.Labels)
	}
	if err := PatchJSON(t.Context(), c, d, JSONTest(path, "b:1"), JSONRemove(path)); err == nil || image(t, c, "b") != "b:3" {
		t.Errorf("%v: b is %s", err, image(t, c, "b"))
	}
	d.UID = "another"
	if err := PatchJSON(t.Context(), c, d, JSONReplace(path, "b:4")); err == nil || image(t, c, "b") != "b:3" {
		t.Errorf("another object of the name: %v: b is %s", err, image(t, c, "b"))
	}
}
