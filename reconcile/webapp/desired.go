package webapp

import (
	"maps"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/reconcile"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
	v1 "github.com/plimsoll-dev/plimsoll/reconcile/webapp/v1"
)

// Desired is what a WebApp consists of. All of it has the WebApp's name.
type Desired struct {
	// Account is what the pods run as. Without it there must be no Deployment: its pods would run as another's account of the
	// same name, with all its rights.
	Account *corev1.ServiceAccount
	// Deployment is applied with the options beside it.
	Deployment *appsv1.Deployment
	Options    []reconcile.ApplyOption
	// Others are to be there as well, Unwanted is not to be there; both in order.
	Others, Unwanted []client.Object
}

// Desire says what a WebApp is to consist of. deployed says whether its Deployment is there already. app must have its
// defaults, as everything has that comes from an API server.
func Desire(app *v1.WebApp, keys policy.Keys, deployed bool) Desired {
	d := Desired{Deployment: deployment(app, keys)}
	d.Account = &corev1.ServiceAccount{ObjectMeta: metaOf(app)}
	d.wantIf(len(servicePorts(app)) > 0, service(app))
	d.wantIf(app.Spec.PodDisruptionBudget != nil, budget(app))
	d.wantIf(app.Spec.Autoscaling != nil, autoscaler(app))
	switch {
	case app.Spec.Autoscaling == nil:
		d.Deployment.Spec.Replicas = app.Spec.Replicas
	case deployed:
		d.Options = append(d.Options, reconcile.Leave("spec.replicas")) // the autoscaler's from now on
	default:
		d.Deployment.Spec.Replicas = new(app.Spec.Autoscaling.MinReplicas) // what the autoscaler begins with
	}
	return d
}

// Steps are what is to be there beside the Deployment and its account. The first come before it, in any order. The last come after it: an autoscaler, when the replicas have been left to it, so that none of what it
// decides is lost.
func (d *Desired) Steps() (first, last []client.Object) {
	for _, object := range d.Others {
		if _, scales := object.(*autoscalingv2.HorizontalPodAutoscaler); scales {
			last = append(last, object)
		} else {
			first = append(first, object)
		}
	}
	return first, last
}

func (d *Desired) wantIf(wanted bool, object client.Object) {
	if wanted {
		d.Others = append(d.Others, object)
	} else {
		d.Unwanted = append(d.Unwanted, object)
	}
}

func metaOf(app *v1.WebApp) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: app.Namespace, Name: app.Name, Labels: labelsOf(app)}
}

// labelsOf are the labels of everything that a WebApp consists of: the one by which it is found, and the usual ones, of
// which the WebApp's own win.
func labelsOf(app *v1.WebApp) map[string]string {
	labels := map[string]string{
		"app.kubernetes.io/name": app.Name, "app.kubernetes.io/managed-by": "plimsoll",
	}
	for _, usual := range []string{
		"app.kubernetes.io/name", "app.kubernetes.io/instance", "app.kubernetes.io/version", "app.kubernetes.io/component", "app.kubernetes.io/part-of",
	} {
		if value, ok := app.Labels[usual]; ok {
			labels[usual] = value
		}
	}
	maps.Copy(labels, app.Selector())
	return labels
}

// deployment is the Deployment without its replicas.
func deployment(app *v1.WebApp, keys policy.Keys) *appsv1.Deployment {
	d := &appsv1.Deployment{ObjectMeta: metaOf(app)}
	d.Labels[keys.Enabled()] = strconv.FormatBool(app.Spec.Spot != nil) // both, so that the Deployments of WebApps can be cached by it
	d.Annotations = policyOf(app.Spec.Spot, keys)
	d.Spec.Selector = &metav1.LabelSelector{MatchLabels: app.Selector()}
	d.Spec.Template = pods(app)
	return d
}

// policyOf writes spec.spot in the words of package spot; nil: nothing is said.
func policyOf(spec *v1.Spot, keys policy.Keys) map[string]string {
	if spec == nil {
		return nil
	}
	annotations := map[string]string{}
	if spec.Percentage != nil {
		annotations[keys.SpotPercentage()] = strconv.Itoa(int(*spec.Percentage))
	}
	if spec.MinOnDemand != nil {
		annotations[keys.MinOnDemand()] = strconv.Itoa(int(*spec.MinOnDemand))
	}
	if spec.DisruptionSchedule != "" {
		annotations[keys.DisruptionSchedule()] = spec.DisruptionSchedule
		annotations[keys.DisruptionDuration()] = spec.DisruptionDuration
	}
	return annotations
}

func service(app *v1.WebApp) *corev1.Service {
	s := &corev1.Service{ObjectMeta: metaOf(app), Spec: corev1.ServiceSpec{Selector: app.Selector(), Ports: servicePorts(app)}}
	if how := app.Spec.Service; how != nil {
		s.Spec.Type = corev1.ServiceType(how.Type)
		if how.Headless {
			s.Spec.ClusterIP = corev1.ClusterIPNone
		}
	}
	return s
}

// servicePorts are the ports of all containers.
func servicePorts(app *v1.WebApp) []corev1.ServicePort {
	var ports []corev1.ServicePort
	for i := range app.Spec.Containers {
		for _, p := range app.Spec.Containers[i].Ports {
			port := corev1.ServicePort{Name: p.Name, Protocol: corev1.ProtocolTCP, Port: p.ContainerPort, TargetPort: intstr.FromString(p.Name)}
			if p.ServicePort != nil {
				port.Port = *p.ServicePort
			}
			if p.NodePort != nil {
				port.NodePort = *p.NodePort
			}
			ports = append(ports, port)
		}
	}
	return ports
}

func budget(app *v1.WebApp) *policyv1.PodDisruptionBudget {
	b := &policyv1.PodDisruptionBudget{ObjectMeta: metaOf(app)}
	b.Spec.Selector = &metav1.LabelSelector{MatchLabels: app.Selector()}
	if bound := app.Spec.PodDisruptionBudget; bound != nil {
		b.Spec.MinAvailable, b.Spec.MaxUnavailable = bound.MinAvailable, bound.MaxUnavailable
	}
	return b
}

func autoscaler(app *v1.WebApp) *autoscalingv2.HorizontalPodAutoscaler {
	h := &autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: metaOf(app)}
	h.Spec.ScaleTargetRef = autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: app.Name}
	if bounds := app.Spec.Autoscaling; bounds != nil {
		h.Spec.MinReplicas, h.Spec.MaxReplicas = new(bounds.MinReplicas), bounds.MaxReplicas
		h.Spec.Metrics = []autoscalingv2.MetricSpec{{
			Type: autoscalingv2.ResourceMetricSourceType,
			Resource: &autoscalingv2.ResourceMetricSource{Name: corev1.ResourceCPU, Target: autoscalingv2.MetricTarget{
				Type: autoscalingv2.UtilizationMetricType, AverageUtilization: new(bounds.TargetCPUUtilization),
			}},
		}}
	}
	return h
}
