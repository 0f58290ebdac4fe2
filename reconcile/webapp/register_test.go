package webapp

import (
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/plimsoll-dev/plimsoll/clusters"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot"
	v1 "github.com/plimsoll-dev/plimsoll/reconcile/webapp/v1"
)

func TestTheDeploymentsOfWebAppsAreCachedWholeAndThoseOfOthersAreNot(t *testing.T) {
	g := NewWithT(t)
	merged, err := clusters.MergeKinds([]clusters.Kind{spot.DeploymentKind(keys)}, []clusters.Kind{deploymentKind(keys)}) // in the hub's order
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(merged).To(HaveLen(1))
	from := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{keys.Enabled(): "true", "team": "blue"}}}
	from.Spec.Template.Spec.Containers = []corev1.Container{{Name: "web"}}
	into := &appsv1.Deployment{}
	merged[0].Keep(from, into)
	g.Expect(into.Spec.Template.Spec.Containers).To(BeEmpty())
	g.Expect(into.Labels).To(Equal(map[string]string{keys.Enabled(): "true"}))

	from.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps.plimsoll.dev/v1beta1", Kind: v1.Kind, Name: "shop", Controller: new(true)}}
	merged[0].Keep(from, into)
	g.Expect(into.Spec).To(Equal(from.Spec))
	g.Expect(into.Labels).To(Equal(from.Labels))
}

func TestADeploymentIsCachedWhetherItIsPlacedOrNot(t *testing.T) {
	g := NewWithT(t)
	selector := deploymentKind(keys).Labels
	for _, app := range []*v1.WebApp{shop(), shop(func(app *v1.WebApp) { app.Spec.Spot = &v1.Spot{} })} {
		g.Expect(selector.Matches(labels.Set(Desire(app, keys, false).Deployment.Labels))).To(BeTrue())
	}
}
