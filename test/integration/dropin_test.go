package integration

import (
	"fmt"
	"strconv"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
	"github.com/plimsoll-dev/plimsoll/test/fleet"
	"github.com/plimsoll-dev/plimsoll/test/kube"
)

// predecessor makes the labels and annotations of the project that Plimsoll takes the place of.
var predecessor = policy.Keys{Prefix: "spotalis.io"}

// TestDropIn runs workloads as the predecessor's users wrote them, and expects what its documents promise.
func TestDropIn(t *testing.T) {
	fleets.beside(t)
	f := startFleet(t, "one")
	h := startHub(t, f, "dropin", fleet.Settings{"spot.annotationPrefix": predecessor.Prefix})
	for name, spec := range map[string]func(*placing){
		"a burst gets the mix at once":                              dropInBursts,
		"from one replica to ten":                                   func(p *placing) { dropInScaling(p, 1, 10) },
		"up and down again":                                         func(p *placing) { dropInScaling(p, 5, 15, 8) },
		"a changed percentage converges again":                      dropInConvergence,
		"0 and 100 percent override the template's capacity only":   dropInOverrides,
		"pods without an owner are left alone":                      dropInOwnerless,
		"a StatefulSet keeps its ordinals while its replicas move":  dropInOrdinals,
		"the labels of this project mean nothing under that prefix": dropInForeign,
	} {
		t.Run(name, func(t *testing.T) {
			specs.beside(t)
			spec(place(t, h, f.Members[0], map[string]string{predecessor.Enabled(): "true"}))
		})
	}
}

// theirs are the annotations for a percentage, and a floor if there is one.
func theirs(percent int, floor ...int) map[string]string {
	values := map[string]string{predecessor.SpotPercentage(): strconv.Itoa(percent)}
	for _, f := range floor {
		values[predecessor.MinOnDemand()] = strconv.Itoa(f)
	}
	return values
}

func (p *placing) theirDeployment(name string, replicas, percent int) *appsv1.Deployment {
	d := fleet.Deployment(p.namespace, name, replicas, theirs(percent))
	d.Labels = map[string]string{predecessor.Enabled(): "true"}
	return d
}

func dropInBursts(p *placing) {
	for _, c := range []struct{ replicas, percent, spot, onDemand int }{{10, 70, 7, 3}, {20, 80, 16, 4}, {6, 50, 3, 3}} {
		w := p.create(p.theirDeployment(fmt.Sprintf("web-%d", c.replicas), c.replicas, c.percent))
		p.exactly(w, c.replicas, c.percent, 0)
		p.Expect(w.Mix(p.ctx)).To(Equal(fleet.Mix{Spot: c.spot, OnDemand: c.onDemand, Ready: c.replicas}))
	}
}

func dropInScaling(p *placing, steps ...int) {
	const percent = 70
	w := p.create(p.theirDeployment("web", steps[0], percent))
	for _, replicas := range steps {
		p.Expect(w.Scale(p.ctx, replicas)).To(Succeed())
		p.exactly(w, replicas, percent, 0)
	}
}

func dropInConvergence(p *placing) {
	w := p.create(p.theirDeployment("web", 10, 50))
	p.exactly(w, 10, 50, 0)
	p.Expect(w.Annotate(p.ctx, theirs(80))).To(Succeed())
	p.mixed(w, 10, 80, 0)
	p.moved(3)
}

func dropInOverrides(p *placing) {
	for percent, asked := range map[int]string{0: kube.Spot, 100: kube.OnDemand} {
		d := p.theirDeployment(fmt.Sprintf("web-%d", percent), 4, percent)
		d.Spec.Template.Spec.NodeSelector = map[string]string{kube.CapacityLabel: asked, corev1.LabelOSStable: "linux"}
		w := p.create(d)
		p.exactly(w, 4, percent, 0)
		for _, pod := range p.pods(w) {
			p.Expect(pod.Spec.NodeSelector).To(HaveLen(2))
			p.Expect(pod.Spec.NodeSelector).To(HaveKeyWithValue(corev1.LabelOSStable, "linux"))
			p.Expect(pod.Spec.NodeSelector).NotTo(HaveKeyWithValue(kube.CapacityLabel, asked))
		}
	}
}

func dropInOwnerless(p *placing) {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: "alone", Labels: map[string]string{predecessor.Enabled(): "true"}, Annotations: theirs(100)},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "images.example.com/app:1"}}},
	}
	p.Expect(p.member.Client().Create(p.ctx, pod)).To(Succeed())
	w := p.create(p.theirDeployment("web", 4, 50)) // when it is done, the pod's turn has come and gone
	p.exactly(w, 4, 50, 0)
	p.Expect(p.member.Client().Get(p.ctx, client.ObjectKeyFromObject(pod), pod)).To(Succeed())
	p.Expect(pod.Spec.NodeSelector).To(BeEmpty())
	p.Expect(pod.Labels).To(HaveLen(1))
	p.Expect(pod.DeletionTimestamp).To(BeNil())
}

func dropInOrdinals(p *placing) {
	const replicas = 5
	set := fleet.StatefulSet(p.namespace, "db", replicas, theirs(60, 1))
	set.Labels = map[string]string{predecessor.Enabled(): "true"}
	w := p.create(set)
	p.exactly(w, replicas, 60, 1)
	p.Expect(w.Annotate(p.ctx, theirs(20))).To(Succeed())
	p.mixed(w, replicas, 20, 1)
	var names []string
	for _, pod := range p.pods(w) {
		names = append(names, pod.Name)
	}
	p.Expect(names).To(ConsistOf("db-0", "db-1", "db-2", "db-3", "db-4"))
	p.moved(2)
}

func dropInForeign(p *placing) {
	ours := fleet.Deployment(p.namespace, "ours", 3, fleet.Policy(100, 0))
	w := p.create(ours)
	p.ready(w, 3)
	witness := p.create(p.theirDeployment("web", 4, 50))
	p.exactly(witness, 4, 50, 0)
	for _, pod := range p.pods(w) {
		p.Expect(pod.Spec.NodeSelector).To(BeEmpty())
	}
}
