package enroll

import (
	"context"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
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

// revoke deletes the Secret with a token that does not expire, once the hub has another.
func (e *enrolment) revoke(ctx context.Context) error {
	if e.TokenDuration == 0 {
		return nil
	}
	secret, err := e.tokenSecret()()
	if err != nil {
		return err
	}
	change, err := e.member.remove(ctx, secret)
	if err != nil || change.Action == Absent {
		return err
	}
	e.report(change)
	return nil
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
