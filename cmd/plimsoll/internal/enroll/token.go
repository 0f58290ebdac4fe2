package enroll

import (
	"context"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

// AudienceToken returns a short-lived token of a service account of the hub cluster, for the audience of the hub's API.
func AudienceToken(ctx context.Context, hub *Context, namespace, account, audience string) (string, error) {
	c, err := Connect(SideHub, hub)
	if err != nil {
		return "", err
	}
	token, _, err := requestToken(ctx, c, namespace, account, 10*time.Minute, audience)
	return token, err
}
