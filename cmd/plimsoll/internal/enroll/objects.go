package enroll

import (
	"fmt"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Names of what is made.
const (
	// DefaultNamespace is the hub's in the hub cluster, and that of its account in a member.
	DefaultNamespace = "plimsoll-system"
	// Account is the hub's service account in a member.
	Account = "plimsoll-hub"
	// TokenSecret holds the account's token, unless that is one that expires.
	TokenSecret = "plimsoll-hub-token"
	// Role is the ClusterRole of the account, and its binding.
	Role = "plimsoll-member"
	// WebhookConfiguration is the MutatingWebhookConfiguration that the hub keeps current.
	WebhookConfiguration = "plimsoll"

	// MemberLabel, with the value "true", makes a Secret a registration; its kubeconfig is under KubeconfigKey.
	MemberLabel   = "plimsoll.dev/member"
	KubeconfigKey = "kubeconfig"
	// UIDAnnotation of a registration holds the UID of the member's kube-system namespace, to find out that a cluster is
	// registered already.
	UIDAnnotation = "plimsoll.dev/cluster-uid"

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

func namespaceObject(name string) func() (object, error) {
	return func() (object, error) {
		return of("namespaces", &corev1.Namespace{TypeMeta: typeMeta("v1", "Namespace"), ObjectMeta: meta("", name)})
	}
}

// memberObjects are what is made in a member, in this order; the token's Secret is left out when the token expires.
func memberObjects(namespace string, withSecret bool) ([]object, error) {
	makers := []func() (object, error){
		namespaceObject(namespace),
		func() (object, error) {
			return of("serviceaccounts", &corev1.ServiceAccount{TypeMeta: typeMeta("v1", "ServiceAccount"), ObjectMeta: meta(namespace, Account)})
		},
		func() (object, error) {
			return of("clusterroles", &rbacv1.ClusterRole{
				TypeMeta: typeMeta("rbac.authorization.k8s.io/v1", "ClusterRole"), ObjectMeta: meta("", Role), Rules: memberRules(),
			})
		},
		func() (object, error) {
			return of("clusterrolebindings", &rbacv1.ClusterRoleBinding{
				TypeMeta: typeMeta("rbac.authorization.k8s.io/v1", "ClusterRoleBinding"), ObjectMeta: meta("", Role),
				RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: Role},
				Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: Account}},
			})
		},
		// Without the field webhooks, so that applying it again takes nothing away from what the hub wrote.
		func() (object, error) {
			return of("mutatingwebhookconfigurations", &admissionregistrationv1.MutatingWebhookConfiguration{
				TypeMeta: typeMeta("admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration"), ObjectMeta: meta("", WebhookConfiguration),
			})
		},
	}
	if withSecret {
		makers = append(makers, func() (object, error) {
			secret := &corev1.Secret{TypeMeta: typeMeta("v1", "Secret"), ObjectMeta: meta(namespace, TokenSecret), Type: corev1.SecretTypeServiceAccountToken}
			secret.Annotations = map[string]string{corev1.ServiceAccountNameKey: Account}
			return of("secrets", secret)
		})
	}
	return collect(makers...)
}

// registration is the Secret that makes a cluster a member.
func registration(namespace, name, uid string, kubeconfig []byte) (object, error) {
	secret := &corev1.Secret{
		TypeMeta: typeMeta("v1", "Secret"), ObjectMeta: meta(namespace, name), Type: corev1.SecretTypeOpaque,
		Data: map[string][]byte{KubeconfigKey: kubeconfig},
	}
	secret.Labels[MemberLabel] = "true"
	if uid != "" {
		secret.Annotations = map[string]string{UIDAnnotation: uid}
	}
	return of("secrets", secret)
}
