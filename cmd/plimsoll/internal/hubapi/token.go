package hubapi

import (
	"context"
	"fmt"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// Accounts are the service accounts in the hub's namespace whose tokens people call the API with, the one that may do more first. Who may
// request a token of one has its rights.
var Accounts = []string{"plimsoll-operator", "plimsoll-viewer"}

// tokenLife is how long a watch can be followed: a token is not renewed while a command runs.
const tokenLife = time.Hour

// Token requests a token of the first of the accounts for which the person may.
func (c *Cluster) Token(ctx context.Context, audience string) (string, error) {
	var refused error
	for _, account := range Accounts {
		token, err := c.request(ctx, account, audience)
		if err == nil {
			return token, nil
		}
		if !apierrors.IsForbidden(err) && !apierrors.IsNotFound(err) {
			return "", c.failed("request a token of serviceaccount/"+c.namespace+"/"+account, err)
		}
		if refused == nil || apierrors.IsForbidden(err) && apierrors.IsNotFound(refused) {
			refused = err
		}
	}
	return "", c.failed(fmt.Sprintf("request a token of serviceaccount/%s/%s or %s", c.namespace, Accounts[0], Accounts[1]), refused)
}

func (c *Cluster) request(ctx context.Context, account, audience string) (string, error) {
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		Audiences: []string{audience}, ExpirationSeconds: ptr.To(int64(tokenLife / time.Second)),
	}}
	answer, err := c.core.ServiceAccounts(c.namespace).CreateToken(ctx, account, request, metav1.CreateOptions{})
	if err != nil {
		return "", err
	}
	return answer.Status.Token, nil
}
