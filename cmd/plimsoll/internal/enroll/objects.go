package enroll

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	"github.com/plimsoll-dev/plimsoll/clusters"
	"github.com/plimsoll-dev/plimsoll/hub/confine"
)

// Names of what is made.
const (
	// DefaultNamespace is that of the hub's account in a member, and of the hub's own keys in the hub cluster.
	DefaultNamespace = "plimsoll-system"
	// RegistrationNamespace is that of registrations in the hub cluster.
	RegistrationNamespace = "plimsoll-members"
	// Account is the hub's service account in a member that is another cluster than its own, see [InClusterAccount].
	Account = "plimsoll-hub"
	// TokenSecret holds the account's token, unless that is one that expires.
	TokenSecret = "plimsoll-hub-token"
	// Role is the ClusterRole of the account, and its binding.
	Role = "plimsoll-member"
	// WebhookConfiguration is the MutatingWebhookConfiguration that the hub keeps current.
	WebhookConfiguration = "plimsoll"

	// ProbePriorityClass is that of the pause pods that look for spot capacity, of the lowest priority for which Cluster
	// Autoscaler still brings nodes.
	ProbePriorityClass = "plimsoll-probe"
	probePriority      = -10

	// MemberLabel, with the value "true", makes a Secret a registration; its kubeconfig is under KubeconfigKey.
	MemberLabel   = "plimsoll.dev/member"
	KubeconfigKey = "kubeconfig"
	// UIDAnnotation of a registration holds the UID of the member's kube-system namespace, to find out that a cluster is
	// registered already.
	UIDAnnotation = "plimsoll.dev/cluster-uid"
	// NamespacesAnnotation of a registration names the namespaces of the cluster that it is for; without it, it is for all.
	NamespacesAnnotation = "plimsoll.dev/namespaces"

	managedByLabel = "app.kubernetes.io/managed-by"
	fieldManager   = "plimsoll-cli"
)

// object is something to apply or to delete.
type object struct {
	resource schema.GroupVersionResource
	body     *unstructured.Unstructured
}

// String names it as kubectl would.
func (o object) String() string { return describe(o.resource, o.body.GetNamespace(), o.body.GetName()) }

func describe(resource schema.GroupVersionResource, namespace, name string) string {
	kind := strings.TrimSuffix(resource.Resource, "s")
	if strings.HasSuffix(kind, "sse") { // classes
		kind = strings.TrimSuffix(kind, "e")
	}
	if stem, ok := strings.CutSuffix(kind, "ie"); ok { // policies
		kind = stem + "y"
	}
	if namespace != "" {
		name = namespace + "/" + name
	}
	return kind + "/" + name
}

// of makes an object of a typed one, without the fields that a typed object always has and nobody set.
func of(resource string, typed runtime.Object) (object, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(typed)
	if err != nil {
		return object{}, fmt.Errorf("encode a %s: %w", resource, err)
	}
	body := &unstructured.Unstructured{Object: content}
	unstructured.RemoveNestedField(content, "status")
	unstructured.RemoveNestedField(content, "metadata", "creationTimestamp")
	return object{resource: body.GroupVersionKind().GroupVersion().WithResource(resource), body: body}, nil
}

func collect(objects ...func() (object, error)) ([]object, error) {
	made := make([]object, 0, len(objects))
	for _, make := range objects {
		one, err := make()
		if err != nil {
			return nil, err
		}
		made = append(made, one)
	}
	return made, nil
}

func meta(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{managedByLabel: fieldManager}}
}

func typeMeta(apiVersion, kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: apiVersion, Kind: kind}
}

// namespaceObject is a namespace in which no pod may do more than the restricted Pod Security Standard lets it.
func namespaceObject(name string, labels map[string]string) func() (object, error) {
	return func() (object, error) {
		namespace := &corev1.Namespace{TypeMeta: typeMeta("v1", "Namespace"), ObjectMeta: meta("", name)}
		maps.Copy(namespace.Labels, labels)
		return of("namespaces", namespace)
	}
}

// namespaceLabels are those of the namespace of the hub's account, and of the hub's, which may be the same. Tenants have the webhook
// checked in a namespace of theirs.
func (r Registration) namespaceLabels() map[string]string {
	if len(r.Namespaces) > 0 {
		return confine.PodSecurityLabels()
	}
	return confine.NamespaceLabels(r.AnnotationPrefixes...)
}

// memberObjects are what is made in a member, in this order; the token's Secret is left out when the token expires.
func memberObjects(r Registration, withSecret bool) ([]object, error) {
	own := r.names()
	makers := []func() (object, error){
		namespaceObject(r.MemberNamespace, r.namespaceLabels()),
		func() (object, error) {
			return of("serviceaccounts", &corev1.ServiceAccount{TypeMeta: typeMeta("v1", "ServiceAccount"), ObjectMeta: meta(r.MemberNamespace, own.account)})
		},
	}
	makers = append(makers, r.policies()...) // before the account has any right
	makers = append(makers,
		func() (object, error) {
			return of("clusterroles", &rbacv1.ClusterRole{
				TypeMeta: typeMeta("rbac.authorization.k8s.io/v1", "ClusterRole"), ObjectMeta: meta("", own.role), Rules: r.clusterRules(),
			})
		},
		func() (object, error) {
			return of("clusterrolebindings", &rbacv1.ClusterRoleBinding{
				TypeMeta: typeMeta("rbac.authorization.k8s.io/v1", "ClusterRoleBinding"), ObjectMeta: meta("", own.role),
				RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: own.role},
				Subjects: r.subjects(),
			})
		})
	for _, namespace := range r.Namespaces {
		makers = append(makers, grants(r, namespace)...)
	}
	if len(r.Namespaces) == 0 {
		makers = append(makers, role(r, r.MemberNamespace, probeRules())...)
		makers = append(makers, probePriorityClass)
	}
	makers = append(makers, roleIn(r.MemberNamespace, own.role+"-token", tokenRules(own.account), r.subjects())...)
	makers = append(makers, identityLease(r.MemberNamespace))
	makers = append(makers, roleIn(r.MemberNamespace, own.role+identitySuffix, identityRules(), r.subjects())...)
	// Without the field webhooks, so that applying it again takes nothing away from what the hub wrote.
	makers = append(makers, func() (object, error) {
		return of("mutatingwebhookconfigurations", &admissionregistrationv1.MutatingWebhookConfiguration{
			TypeMeta: typeMeta("admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration"), ObjectMeta: meta("", own.webhook),
		})
	})
	if len(r.Keeps) > 0 {
		makers = append(makers, emptyValidation)
	}
	if withSecret {
		makers = append(makers, r.tokenSecret())
	}
	return collect(makers...)
}

// tokenSecret is filled by Kubernetes with a token of the account that does not expire.
func (r Registration) tokenSecret() func() (object, error) {
	return func() (object, error) {
		own := r.names()
		secret := &corev1.Secret{TypeMeta: typeMeta("v1", "Secret"), ObjectMeta: meta(r.MemberNamespace, own.token), Type: corev1.SecretTypeServiceAccountToken}
		secret.Annotations = map[string]string{corev1.ServiceAccountNameKey: own.account}
		return of("secrets", secret)
	}
}

// probePriorityClass is the priority of probes: below that of every other pod.
func probePriorityClass() (object, error) {
	return of("priorityclasses", &schedulingv1.PriorityClass{
		TypeMeta: typeMeta("scheduling.k8s.io/v1", "PriorityClass"), ObjectMeta: meta("", ProbePriorityClass),
		Value: probePriority, PreemptionPolicy: ptr.To(corev1.PreemptNever),
		Description: "Plimsoll's probe pods, which test whether spot capacity is available again. All other pods preempt them.",
	})
}

// grants are the role of a tenant in one of its namespaces, and its binding. Probes for spot capacity are made in the first.
func grants(r Registration, namespace string) []func() (object, error) {
	rules := slices.Concat(placementRules(), r.workloadRules(), r.fleetRules(), r.writeRules())
	if len(r.Namespaces) > 0 && namespace == slices.Min(r.Namespaces) {
		rules = append(rules, probeRules()...)
	}
	return role(r, namespace, rules)
}

// role is one of the hub in a namespace of the member, and its binding.
func role(r Registration, namespace string, rules []rbacv1.PolicyRule) []func() (object, error) {
	return roleIn(namespace, r.names().role, rules, r.subjects())
}

func roleIn(namespace, name string, rules []rbacv1.PolicyRule, subjects []rbacv1.Subject) []func() (object, error) {
	return []func() (object, error){
		func() (object, error) {
			return of("roles", &rbacv1.Role{
				TypeMeta: typeMeta("rbac.authorization.k8s.io/v1", "Role"), ObjectMeta: meta(namespace, name), Rules: rules,
			})
		},
		func() (object, error) {
			return of("rolebindings", &rbacv1.RoleBinding{
				TypeMeta: typeMeta("rbac.authorization.k8s.io/v1", "RoleBinding"), ObjectMeta: meta(namespace, name),
				RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
				Subjects: subjects,
			})
		},
	}
}

func (r Registration) subjects() []rbacv1.Subject {
	return []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: r.MemberNamespace, Name: r.names().account}}
}

// registration is the Secret that makes a cluster a member.
func registration(r Registration, uid string, kubeconfig []byte) (object, error) {
	secret := &corev1.Secret{
		TypeMeta: typeMeta("v1", "Secret"), ObjectMeta: meta(r.Namespace, r.Name), Type: cmp.Or(r.secretType, clusters.KubeconfigType),
		Data: map[string][]byte{KubeconfigKey: kubeconfig},
	}
	secret.Labels[MemberLabel] = "true"
	secret.Annotations = map[string]string{clusters.IdentityAnnotation: r.MemberNamespace}
	if uid != "" {
		secret.Annotations[UIDAnnotation] = uid
	}
	if len(r.Namespaces) > 0 {
		secret.Annotations[NamespacesAnnotation] = strings.Join(r.Namespaces, ",")
	}
	return of("secrets", secret)
}
