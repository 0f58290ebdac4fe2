package kube

import (
	"context"
	"crypto/rand"
	_ "embed" // the components' configuration
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// NeverReady is the annotation of a pod that stays Pending on its node, whatever its value.
const NeverReady = "kube.plimsoll.dev/never-ready"

// serviceAccountPrefix is how Kubernetes names a service account as a user.
const serviceAccountPrefix = "system:serviceaccount:"

// tokenLife is how long the tokens in kubeconfigs hold.
const tokenLife = 24 * time.Hour

// administrators have a static token each, so that the audit log distinguishes them.
var administrators = []string{"admin", string(ControllerManager), string(Scheduler), string(Kwok), string(Karpenter)}

//go:embed files/audit-policy.yaml
var auditPolicy []byte

//go:embed files/kwok.yaml
var kwokTemplate string

// writeCredentials makes the cluster's keys, tokens and the components' kubeconfigs.
func (c *Cluster) writeCredentials() (err error) {
	if c.ca, err = newAuthority("plimsoll-testbed-" + c.name); err != nil {
		return err
	}
	cert, key, err := c.ca.serving()
	if err != nil {
		return err
	}
	signing, err := newKey()
	if err != nil {
		return err
	}
	private, err := pemKey(signing)
	if err != nil {
		return err
	}
	public, err := pemPublicKey(signing)
	if err != nil {
		return err
	}
	tokens, err := c.adminTokens()
	return errors.Join(err,
		c.write("ca.crt", c.ca.pem), c.write("serving.crt", cert), c.write("serving.key", key),
		c.write("sa.key", private), c.write("sa.pub", public), c.write("tokens.csv", tokens),
	)
}

// adminTokens makes the file of static tokens, and a kubeconfig for each component that has one.
func (c *Cluster) adminTokens() ([]byte, error) {
	var file strings.Builder
	for _, user := range administrators {
		random := make([]byte, 16)
		if _, err := rand.Read(random); err != nil {
			return nil, fmt.Errorf("make a token: %w", err)
		}
		token := hex.EncodeToString(random)
		fmt.Fprintf(&file, "%s,%s,%s,system:masters\n", token, user, user)
		if user == "admin" {
			c.token = token
			continue
		}
		config, err := c.kubeconfig(&clientcmdapi.AuthInfo{Token: token})
		if err != nil {
			return nil, err
		}
		if err := c.write(user+".kubeconfig", config); err != nil {
			return nil, err
		}
	}
	return []byte(file.String()), nil
}

// writeConfiguration writes what the components are configured with in files.
func (c *Cluster) writeConfiguration() error {
	kwok := strings.NewReplacer(
		"@NEVER_READY@", NeverReady,
		"@NODE_START@", NodeStart,
		"@POD_START@", strconv.FormatInt(c.opts.PodStart.Milliseconds(), 10),
		"@POD_STOP@", strconv.FormatInt(c.opts.PodStop.Milliseconds(), 10),
	).Replace(kwokTemplate)
	return errors.Join(c.write("audit-policy.yaml", auditPolicy), c.write("kwok.yaml", []byte(kwok)))
}

// write puts a file that only we may read into the cluster's folder.
func (c *Cluster) write(name string, content []byte) error {
	if err := os.WriteFile(c.file(name), content, 0o600); err != nil {
		return fmt.Errorf("write the cluster's files: %w", err)
	}
	return nil
}

// Kubeconfig is the admin's, with inline data only.
func (c *Cluster) Kubeconfig() []byte {
	// It consists of strings that have been written once already; see adminTokens.
	config, _ := c.kubeconfig(&clientcmdapi.AuthInfo{Token: c.token})
	return config
}

// KubeconfigFor is a kubeconfig, with inline data only, for one user without any right of its own. A user named
// "system:serviceaccount:<namespace>:<name>" must exist and gets a token from the TokenRequest API; groups do not
// apply to it. Any other user gets a client certificate with that name and these groups, which a Proxy does not pass on.
func (c *Cluster) KubeconfigFor(ctx context.Context, user string, groups ...string) ([]byte, error) {
	if account, ok := strings.CutPrefix(user, serviceAccountPrefix); ok {
		namespace, name, ok := strings.Cut(account, ":")
		if !ok || len(groups) > 0 {
			return nil, fmt.Errorf("kubeconfig for %q: a service account is %s<namespace>:<name>, without groups", user, serviceAccountPrefix)
		}
		token, err := c.Token(ctx, namespace, name)
		if err != nil {
			return nil, err
		}
		return c.kubeconfig(&clientcmdapi.AuthInfo{Token: token})
	}
	if user == "" {
		return nil, errors.New("kubeconfig for a user without a name")
	}
	cert, key, err := c.ca.client(user, groups)
	if err != nil {
		return nil, err
	}
	return c.kubeconfig(&clientcmdapi.AuthInfo{ClientCertificateData: cert, ClientKeyData: key})
}

// Token requests a token of a service account for these audiences; for none, the API server's own.
func (c *Cluster) Token(ctx context.Context, namespace, name string, audiences ...string) (string, error) {
	seconds := int64(tokenLife / time.Second)
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	request := &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{Audiences: audiences, ExpirationSeconds: &seconds},
	}
	if err := c.client.SubResource("token").Create(ctx, account, request); err != nil {
		return "", fmt.Errorf("cluster %s: request a token of %s/%s: %w", c.name, namespace, name, err)
	}
	return request.Status.Token, nil
}

// kubeconfig is a kubeconfig with one context, named after the cluster.
func (c *Cluster) kubeconfig(user *clientcmdapi.AuthInfo) ([]byte, error) {
	config := clientcmdapi.NewConfig()
	config.Clusters[c.name] = &clientcmdapi.Cluster{Server: c.URL(), CertificateAuthorityData: c.CAData()}
	config.AuthInfos[c.name] = user
	config.Contexts[c.name] = &clientcmdapi.Context{Cluster: c.name, AuthInfo: c.name}
	config.CurrentContext = c.name
	content, err := clientcmd.Write(*config)
	if err != nil {
		return nil, fmt.Errorf("cluster %s: write a kubeconfig: %w", c.name, err)
	}
	return content, nil
}
