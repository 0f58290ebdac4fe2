package webapp

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	v1 "github.com/plimsoll-dev/plimsoll/reconcile/webapp/v1"
)

func image(name string) func(*v1.WebApp) {
	return func(app *v1.WebApp) { app.Spec.Containers[0].Image = name }
}

func TestEveryRefusalNamesFieldValueAndRule(t *testing.T) {
	strict := Policy{Images: ImagesDenied, MaxReplicas: 10}
	replicas := func(n int32) func(*v1.WebApp) { return func(app *v1.WebApp) { app.Spec.Replicas = &n } }
	for name, test := range map[string]struct {
		policy   Policy
		app, old *v1.WebApp
		refused  string
		warned   string
	}{
		"a tag":              {policy: strict, app: shop(image("nginx:1"))},
		"no tag":             {policy: strict, app: shop(image("nginx")), refused: `spec.containers[0].image: Invalid value: "nginx": must have a tag or a digest (modules.webapp.imagePolicy of the hub is deny)`},
		"no tag, warned":     {policy: Policy{Images: ImagesWarned}, app: shop(image("nginx")), warned: `spec.containers[0].image: Invalid value: "nginx": should have a tag or a digest: without one, each pod runs what latest is when it starts`},
		"no tag, by default": {app: shop(image("nginx")), warned: "should have a tag"},
		"no tag, allowed":    {policy: Policy{Images: ImagesAllowed}, app: shop(image("nginx"))},
		"no tag, as before":  {policy: strict, app: shop(image("nginx")), old: shop(image("nginx")), warned: "should have a tag"},
		"too many replicas":  {policy: strict, app: shop(replicas(11)), refused: "spec.replicas: Invalid value: 11: must be at most 10 (modules.webapp.maxReplicas of the hub)"},
		"as many as before":  {policy: strict, app: shop(replicas(20)), old: shop(replicas(20)), warned: "spec.replicas: Invalid value: 20"},
		"more than before":   {policy: strict, app: shop(replicas(21)), old: shop(replicas(20)), refused: "spec.replicas: Invalid value: 21"},
		"no bound":           {app: shop(replicas(9999), image("a:1"))},
		"too far scaled": {policy: strict, app: shop(func(app *v1.WebApp) { app.Spec.Autoscaling = &v1.Autoscaling{MinReplicas: 1, MaxReplicas: 30} }),
			refused: "spec.autoscaling.maxReplicas: Invalid value: 30: must be at most 10 (modules.webapp.maxReplicas of the hub)"},
		"no schedule": {policy: strict, app: shop(func(app *v1.WebApp) {
			app.Spec.Spot = &v1.Spot{DisruptionSchedule: "every night", DisruptionDuration: "2h"}
		}), refused: `spec.spot.disruptionSchedule: Invalid value: "every night": must be `},
		"no duration": {policy: strict, app: shop(func(app *v1.WebApp) {
			app.Spec.Spot = &v1.Spot{DisruptionSchedule: "0 2 * * *", DisruptionDuration: "0s"}
		}), refused: `spec.spot.disruptionDuration: Invalid value: "0s": must be `},
		"another service": {policy: strict, app: shop(func(app *v1.WebApp) { app.Spec.Service = &v1.Service{Headless: true} }), old: shop(),
			refused: "spec.service.headless: Invalid value: true: cannot be changed: Kubernetes cannot change the cluster IP of a Service"},
		"going anyway": {policy: strict, app: shop(image("nginx"), func(app *v1.WebApp) { app.DeletionTimestamp = new(metav1.Now()) })},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			refusals, warnings := test.policy.Review(test.app, test.old)
			if test.refused == "" {
				g.Expect(refusals).To(BeEmpty())
			} else {
				g.Expect(refusals.ToAggregate()).To(MatchError(ContainSubstring(test.refused)))
			}
			if test.warned == "" {
				g.Expect(warnings).To(BeEmpty())
			} else {
				g.Expect(warnings).To(ContainElement(ContainSubstring(test.warned)))
			}
		})
	}
	NewWithT(t).Expect(strict.ReviewScale(11).ToAggregate()).To(MatchError(ContainSubstring("spec.replicas: Invalid value: 11: must be at most 10")))
	NewWithT(t).Expect(strict.ReviewScale(10)).To(BeEmpty())
}

func TestAnImageIsPinnedByATagOrADigest(t *testing.T) {
	g := NewWithT(t)
	for image, pinned := range map[string]bool{
		"nginx": false, "nginx:1": true, "nginx@sha256:0": true, "nginx:": false, "localhost:5000/nginx": false,
		"localhost:5000/nginx:1": true, "a/b/c": false, "a/b/c:latest": true, ":1": false, "": false,
	} {
		g.Expect(Pinned(image)).To(Equal(pinned), image)
	}
}

func TestWhatWasAcceptedStaysAcceptable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		app := drawV1(t)
		stricter := Policy{Images: ImagesDenied, MaxReplicas: rapid.IntRange(1, 100).Draw(t, "max")}
		if refusals, _ := stricter.Review(app.DeepCopy(), app); len(refusals) > 0 {
			t.Fatal(refusals)
		}
	})
}

func TestAWebAppGetsTheUsualLabelOnce(t *testing.T) {
	g := NewWithT(t)
	app := shop()
	g.Expect(Complete(app)).To(BeTrue())
	g.Expect(app.Labels).To(Equal(map[string]string{LabelName: "shop"}))
	g.Expect(Complete(app)).To(BeFalse())
	app.Labels[LabelName] = "another"
	g.Expect(Complete(app)).To(BeFalse())
	g.Expect(app.Labels).To(HaveKeyWithValue(LabelName, "another"))
	unnamed := shop(func(app *v1.WebApp) { app.Name, app.GenerateName = "", "shop-" })
	g.Expect(Complete(unnamed)).To(BeFalse())
}
