package webapp

import (
	"testing"

	. "github.com/onsi/gomega"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
	v1 "github.com/plimsoll-dev/plimsoll/reconcile/webapp/v1"
)

var keys = policy.Keys{Prefix: policy.DefaultPrefix}

// shop is a WebApp of one container with a port, with its defaults.
func shop(change ...func(*v1.WebApp)) *v1.WebApp {
	app := &v1.WebApp{ObjectMeta: metav1.ObjectMeta{Namespace: "eu", Name: "shop", UID: "a-uid", Generation: 1}}
	app.APIVersion, app.Kind = v1.GroupVersion.String(), v1.Kind
	app.Spec.Containers = []v1.Container{{Name: "web", Image: "shop:1", Ports: []v1.Port{{Name: "http", ContainerPort: 8080}}}}
	for _, c := range change {
		c(app)
	}
	app.Spec.SetDefaults()
	return app
}

// find returns the object of a type; nil when there is none.
func find[T client.Object](objects []client.Object) (found T) {
	for _, o := range objects {
		if is, ok := o.(T); ok {
			return is
		}
	}
	return found
}

func TestASimpleWebAppIsADeploymentAServiceAndAServiceAccount(t *testing.T) {
	g := NewWithT(t)
	d := Desire(shop(), keys, false)
	g.Expect(d.Others).To(HaveLen(1))
	g.Expect(d.Account.Name).To(Equal("shop"))
	g.Expect(d.Unwanted).To(HaveLen(2))
	g.Expect(d.Options).To(BeEmpty())

	service := find[*corev1.Service](d.Others)
	g.Expect(service.Spec.Ports).To(Equal([]corev1.ServicePort{{Name: "http", Protocol: "TCP", Port: 8080, TargetPort: intstr.FromString("http")}}))
	g.Expect(service.Spec.Selector).To(Equal(map[string]string{v1.LabelWebApp: "shop"}))
	g.Expect(service.Spec.Type).To(Equal(corev1.ServiceTypeClusterIP))
	g.Expect(service.Spec.ClusterIP).To(BeEmpty())

	g.Expect(d.Deployment.Spec.Replicas).To(HaveValue(BeEquivalentTo(1)))
	g.Expect(d.Deployment.Spec.Selector.MatchLabels).To(Equal(service.Spec.Selector))
	g.Expect(d.Deployment.Spec.Template.Labels).To(HaveKeyWithValue(v1.LabelWebApp, "shop"))
	g.Expect(d.Deployment.Labels).To(HaveKeyWithValue(keys.Enabled(), "false"))
	g.Expect(d.Deployment.Annotations).To(BeNil())
}

func TestAWebAppWithoutPortsHasNoService(t *testing.T) {
	g := NewWithT(t)
	d := Desire(shop(func(app *v1.WebApp) { app.Spec.Containers[0].Ports = nil }), keys, true)
	g.Expect(find[*corev1.Service](d.Others)).To(BeNil())
	g.Expect(find[*corev1.Service](d.Unwanted).Name).To(Equal("shop"))
}

func TestEverythingThatAWebAppSaysIsInItsObjects(t *testing.T) {
	g := NewWithT(t)
	app := shop(func(app *v1.WebApp) {
		app.Labels = map[string]string{"app.kubernetes.io/part-of": "sales", "team": "blue", v1.LabelWebApp: "somebody-else"}
		web := &app.Spec.Containers[0]
		web.Command, web.Args, web.Env = []string{"serve"}, []string{"-v"}, []v1.EnvVar{{Name: "A", Value: "b"}}
		web.Ports[0].ServicePort, web.Ports[0].NodePort = new(int32(80)), new(int32(30080))
		web.Readiness = &v1.Readiness{Path: "/ready", Port: "http"}
		app.Spec.Containers = append(app.Spec.Containers, v1.Container{Name: "side", Image: "side:1", Ports: []v1.Port{{Name: "admin", ContainerPort: 9000}}})
		app.Spec.EnvFrom = []v1.EnvFrom{{Secret: "db", Prefix: "DB_"}, {ConfigMap: "settings", Optional: true}}
		app.Spec.Service = &v1.Service{Type: "NodePort"}
		app.Spec.PodDisruptionBudget = &v1.PodDisruptionBudget{MaxUnavailable: new(intstr.FromInt32(1))}
		app.Spec.Spot = &v1.Spot{Percentage: new(int32(70)), MinOnDemand: new(int32(2)), DisruptionSchedule: "0 2 * * *", DisruptionDuration: "2h"}
	})
	d := Desire(app, keys, true)
	g.Expect(d.Deployment.Labels).To(And(HaveKeyWithValue("app.kubernetes.io/part-of", "sales"), Not(HaveKey("team")), HaveKeyWithValue(v1.LabelWebApp, "shop")))
	g.Expect(d.Deployment.Labels).To(HaveKeyWithValue(keys.Enabled(), "true"))
	g.Expect(d.Deployment.Annotations).To(Equal(map[string]string{
		keys.SpotPercentage(): "70", keys.MinOnDemand(): "2", keys.DisruptionSchedule(): "0 2 * * *", keys.DisruptionDuration(): "2h",
	}))
	pod := d.Deployment.Spec.Template.Spec
	g.Expect(pod.ServiceAccountName).To(Equal("shop"))
	g.Expect(pod.Containers).To(HaveLen(2))
	for _, c := range pod.Containers {
		g.Expect(c.EnvFrom).To(HaveLen(2))
		g.Expect(c.EnvFrom[0].SecretRef.Name).To(Equal("db"))
		g.Expect(c.EnvFrom[0].Prefix).To(Equal("DB_"))
		g.Expect(c.EnvFrom[1].ConfigMapRef.Optional).To(HaveValue(BeTrue()))
	}
	g.Expect(pod.Containers[0].Env).To(Equal([]corev1.EnvVar{{Name: "A", Value: "b"}}))
	g.Expect(pod.Containers[0].ReadinessProbe.HTTPGet.Path).To(Equal("/ready"))
	g.Expect(find[*corev1.Service](d.Others).Spec.Ports).To(HaveExactElements(
		And(HaveField("Port", BeEquivalentTo(80)), HaveField("NodePort", BeEquivalentTo(30080))), HaveField("Port", BeEquivalentTo(9000))))
	g.Expect(find[*policyv1.PodDisruptionBudget](d.Others).Spec.MaxUnavailable.IntValue()).To(Equal(1))
	g.Expect(needs(app)).To(HaveLen(1))
	g.Expect(needs(app)[0].String()).To(Equal("Secret eu/db"))
}

func TestAHeadlessServiceHasNoAddress(t *testing.T) {
	app := shop(func(app *v1.WebApp) { app.Spec.Service = &v1.Service{Headless: true} })
	NewWithT(t).Expect(service(app).Spec.ClusterIP).To(Equal(corev1.ClusterIPNone))
}

func TestAnAutoscalerOwnsTheReplicasOnceTheDeploymentIsThere(t *testing.T) {
	g := NewWithT(t)
	app := shop(func(app *v1.WebApp) { app.Spec.Autoscaling = &v1.Autoscaling{MinReplicas: 3, MaxReplicas: 9} })
	first, later := Desire(app, keys, false), Desire(app, keys, true)
	g.Expect(first.Deployment.Spec.Replicas).To(HaveValue(BeEquivalentTo(3)))
	g.Expect(first.Options).To(BeEmpty())
	g.Expect(later.Deployment.Spec.Replicas).To(BeNil())
	g.Expect(later.Options).To(HaveLen(1))
	before, after := later.Steps()
	scaler := find[*autoscalingv2.HorizontalPodAutoscaler](after)
	g.Expect(after).To(ConsistOf(scaler), "the replicas are left before there is an autoscaler")
	g.Expect(find[*corev1.Service](before)).NotTo(BeNil())
	g.Expect(scaler.Spec.MinReplicas).To(HaveValue(BeEquivalentTo(3)))
	g.Expect(scaler.Spec.MaxReplicas).To(BeEquivalentTo(9))
	g.Expect(scaler.Spec.Metrics[0].Resource.Target.AverageUtilization).To(HaveValue(BeEquivalentTo(80)))
}

func TestPodsFitTheRestrictedStandardAndHaveNoTokenUnlessAskedTo(t *testing.T) {
	g := NewWithT(t)
	pod := Desire(shop(), keys, false).Deployment.Spec.Template.Spec
	g.Expect(pod.AutomountServiceAccountToken).To(HaveValue(BeFalse()))
	g.Expect(pod.SecurityContext.RunAsNonRoot).To(HaveValue(BeTrue()))
	g.Expect(pod.SecurityContext.SeccompProfile.Type).To(Equal(corev1.SeccompProfileTypeRuntimeDefault))
	for _, c := range pod.Containers {
		g.Expect(c.SecurityContext.AllowPrivilegeEscalation).To(HaveValue(BeFalse()))
		g.Expect(c.SecurityContext.Capabilities.Drop).To(ConsistOf(BeEquivalentTo("ALL")))
	}
	pod = Desire(shop(func(app *v1.WebApp) {
		app.Spec.PodSecurity, app.Spec.MountToken = v1.PodSecurityBaseline, true
	}), keys, false).Deployment.Spec.Template.Spec
	g.Expect(pod.AutomountServiceAccountToken).To(HaveValue(BeTrue()))
	g.Expect(pod.SecurityContext).To(BeNil())
	g.Expect(pod.Containers[0].SecurityContext).To(BeNil())
}
