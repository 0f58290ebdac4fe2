package enroll

import (
	"context"
	"fmt"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/plimsoll-dev/plimsoll/clusters/kubeconfig"
)

// requestToken asks a cluster for a token of a service account, for the API server itself or for an audience, and returns
// when it expires: the cluster may grant less than was asked for.
func requestToken(ctx context.Context, c *Cluster, namespace, account string, duration time.Duration, audiences ...string) (string, time.Time, error) {
	seconds := int64(duration / time.Second)
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{Audiences: audiences, ExpirationSeconds: &seconds}}
	answer, err := c.typed.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, account, request, metav1.CreateOptions{})
	if err != nil {
		return "", time.Time{}, c.failed("request a token of serviceaccount/"+namespace+"/"+account, err)
	}
	return answer.Status.Token, answer.Status.ExpirationTimestamp.Time, nil
}

// present returns the token that the hub has already: of the same account, as long-lived as was asked for, and in the first half of
// its life. false: there is none.
func (e *enrolment) present(ctx context.Context) (string, time.Time, bool) {
	if e.TokenDuration == 0 {
		return "", time.Time{}, false
	}
	found, err := e.hub.typed.CoreV1().Secrets(e.Namespace).Get(ctx, e.Name, metav1.GetOptions{})
	if err != nil {
		return "", time.Time{}, false
	}
	registered := found.Data[KubeconfigKey]
	is, ok := kubeconfig.TokenOf(registered)
	config, err := clientcmd.RESTConfigFromKubeConfig(registered)
	if !ok || err != nil || is.Namespace != e.MemberNamespace || is.Account != e.names().account || is.Life() != e.TokenDuration || is.Spent(time.Now()) >= 50 {
		return "", time.Time{}, false
	}
	return config.BearerToken, is.Expires, true
}

// revoke deletes the Secret with a token that does not expire, once the hub has another, and returns warnings about those that stay.
func (e *enrolment) revoke(ctx context.Context) (warnings []string, err error) {
	if e.TokenDuration == 0 {
		return nil, nil
	}
	secret, err := e.tokenSecret()()
	if err != nil {
		return nil, err
	}
	change, err := e.member.remove(ctx, secret)
	if err != nil {
		return nil, err
	}
	if change.Action == Deleted {
		e.report(change)
	}
	names, err := e.lasting(ctx)
	switch {
	case apierrors.IsForbidden(err) && change.Action == Kept:
		names = []string{secret.body.GetName()}
	case err != nil && !apierrors.IsForbidden(err):
		return nil, err
	}
	for _, name := range names {
		change := Change{Side: SideMember, Object: describe(secret.resource, e.MemberNamespace, name), Action: Kept, Note: neverExpires}
		e.report(change)
		warnings = append(warnings, fmt.Sprintf("the member still accepts the token in %s (%s): kubectl --context %s -n %s delete secret %s",
			change.Object, change.Note, e.member.context, e.MemberNamespace, name))
	}
	return warnings, nil
}

// neverExpires is the note about a Secret with such a token.
const neverExpires = "it holds a token of the hub's account that does not expire, and plimsoll did not create it"

// lasting names the Secrets in the member with tokens of the hub's account that do not expire.
func (e *enrolment) lasting(ctx context.Context) (names []string, err error) {
	all, err := e.member.typed.CoreV1().Secrets(e.MemberNamespace).List(ctx, metav1.ListOptions{FieldSelector: "type=" + string(corev1.SecretTypeServiceAccountToken)})
	if err != nil {
		return nil, e.member.failed("list the Secrets with tokens in namespace/"+e.MemberNamespace, err)
	}
	for i := range all.Items {
		if secret := &all.Items[i]; secret.DeletionTimestamp == nil && secret.Annotations[corev1.ServiceAccountNameKey] == e.names().account {
			names = append(names, secret.Name)
		}
	}
	return names, nil
}

// AudienceToken returns a short-lived token of a service account of the hub cluster, for the audience of the hub's API.
func AudienceToken(ctx context.Context, hub *Context, namespace, account, audience string) (string, error) {
	c, err := Connect(SideHub, hub)
	if err != nil {
		return "", err
	}
	token, _, err := requestToken(ctx, c, namespace, account, 10*time.Minute, audience)
	return token, err
}
