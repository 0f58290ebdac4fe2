package enroll

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/plimsoll-dev/plimsoll/clusters/kubeconfig"
)

// Rotate gives the hub another token of its account in a member, of the same life, and returns when it expires. With revoke, the account is
// created again first, so that no token of the old one is good for anything: from then until the hub has the new one, the member refuses it.
func Rotate(ctx context.Context, r Registration, member, hub *Context, revoke bool, report func(Change)) (time.Time, error) {
	if err := r.Validate(); err != nil {
		return time.Time{}, err
	}
	e := enrolment{Registration: r, report: report}
	var err error
	if e.member, err = Connect(SideMember, member); err != nil {
		return time.Time{}, err
	}
	if e.hub, err = Connect(SideHub, hub); err != nil {
		return time.Time{}, err
	}
	secret, found, err := registered(ctx, e.hub, r)
	if err != nil {
		return time.Time{}, err
	}
	text, old, err := e.rotatable(ctx, secret, found)
	if err != nil {
		return time.Time{}, err
	}
	e.Namespaces, e.MemberNamespace, e.TokenDuration = registeredNamespaces(found), old.Namespace, old.Life()
	e.InCluster = old.Account == InClusterAccount
	if revoke {
		if err := e.renewAccount(ctx, old); err != nil {
			return time.Time{}, err
		}
	}
	token, expires, err := requestToken(ctx, e.member, old.Namespace, old.Account, old.Life())
	if err == nil {
		err = e.prove(ctx, token)
	}
	if err != nil {
		return time.Time{}, err
	}
	if text, err = kubeconfig.WithToken(text, token); err != nil {
		return time.Time{}, e.hub.failed("change "+secret.String(), err)
	}
	return expires, e.replace(ctx, secret, found, text)
}

// rotatable returns the kubeconfig of a registration and the token in it, if that is one of the member at hand which can be asked for again.
func (e *enrolment) rotatable(ctx context.Context, secret object, found *unstructured.Unstructured) ([]byte, kubeconfig.Token, error) {
	uid, err := e.identify(ctx)
	if err != nil {
		return nil, kubeconfig.Token{}, err
	}
	if found.GetAnnotations()[kubeconfig.TokenRenewalAnnotation] == kubeconfig.RenewedElsewhere {
		return nil, kubeconfig.Token{}, e.hub.failed("rotate "+secret.String(), errors.New("something else keeps its token, as the annotation "+
			kubeconfig.TokenRenewalAnnotation+": "+kubeconfig.RenewedElsewhere+" says, and would put the old one back: rotate it there"))
	}
	known := found.GetAnnotations()[UIDAnnotation]
	if known != "" && known != uid {
		return nil, kubeconfig.Token{}, e.member.failed("find "+e.Name, errors.New("this is not the registered cluster: set --context to its context"))
	}
	text, _, err := unstructured.NestedString(found.Object, "data", KubeconfigKey)
	if err != nil {
		return nil, kubeconfig.Token{}, e.hub.failed("read "+secret.String(), err)
	}
	decoded, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return nil, kubeconfig.Token{}, e.hub.failed("read "+secret.String(), errors.New("its kubeconfig is not base64"))
	}
	switch token, ok := kubeconfig.TokenOf(decoded); {
	case !ok:
		return nil, token, e.hub.failed("rotate "+secret.String(), errors.New("its kubeconfig has no service account token: rotate the credentials where they were created"))
	case token.Life() == 0:
		return nil, token, e.hub.failed("rotate "+secret.String(), fmt.Errorf("its token does not expire: plimsoll register %s --token-duration 720h replaces it, and deletes it", e.Name))
	case known == "":
		return decoded, token, e.takes(ctx, decoded)
	default:
		return decoded, token, nil
	}
}

// takes makes sure, where a registration does not say which cluster it is of, that the member at hand is that: it takes the token that the
// hub has. A token of another one would go to the registered one's server, and leave the hub without access.
func (e *enrolment) takes(ctx context.Context, registered []byte) error {
	held, err := clientcmd.RESTConfigFromKubeConfig(registered)
	if err != nil {
		return e.hub.failed("rotate "+e.Name, errors.New("its kubeconfig cannot be read")) // the cause might quote the token
	}
	config := rest.AnonymousClientConfig(e.member.config)
	config.BearerToken = held.BearerToken
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		return e.member.failed("test the token of "+e.Name, err)
	}
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{Resource: "pods", Verb: "watch", Version: "v1"},
	}}
	_, err = clients.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
	switch {
	case apierrors.IsUnauthorized(err):
		return e.member.failed("find "+e.Name, fmt.Errorf("the registration does not identify its cluster (it has no annotation %s), "+
			"and this one does not take its token: name its context with --context, or, if its token has expired, register it again with plimsoll register", UIDAnnotation))
	case err != nil:
		return e.member.failed("test the token of "+e.Name, err)
	}
	return nil
}

// renewAccount deletes the hub's account in the member and creates it again: tokens are bound to the UID of their account.
func (e *enrolment) renewAccount(ctx context.Context, of kubeconfig.Token) error {
	account, err := serviceAccount(of.Namespace, of.Account)
	if err != nil {
		return err
	}
	found, err := e.member.find(ctx, account)
	if err == nil && found != nil && !ours(found) {
		return e.member.failed("revoke the tokens of "+account.String(), errors.New("plimsoll did not create it: delete and create it yourself, and rotate again"))
	}
	if err == nil && found != nil {
		err = e.applied(e.member.remove(ctx, account))
	}
	if err != nil {
		return err
	}
	return e.applied(e.member.apply(ctx, account))
}

func serviceAccount(namespace, name string) (object, error) {
	return of("serviceaccounts", &corev1.ServiceAccount{TypeMeta: typeMeta("v1", "ServiceAccount"), ObjectMeta: meta(namespace, name)})
}

// replace gives the hub a kubeconfig, unless somebody else has changed the registration in between.
func (e *enrolment) replace(ctx context.Context, secret object, found *unstructured.Unstructured, text []byte) error {
	body, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": string(found.GetUID()), "resourceVersion": found.GetResourceVersion()},
		"data":     map[string]any{KubeconfigKey: text},
	})
	if err != nil {
		return e.hub.failed("change "+secret.String(), errors.New("it cannot be encoded")) // the cause might quote the token
	}
	if _, err := e.hub.client(secret).Patch(ctx, e.Name, types.MergePatchType, body, metav1.PatchOptions{FieldManager: fieldManager}); err != nil {
		return e.hub.failed("change "+secret.String(), err)
	}
	e.report(Change{Side: SideHub, Object: secret.String(), Action: Updated})
	return nil
}
