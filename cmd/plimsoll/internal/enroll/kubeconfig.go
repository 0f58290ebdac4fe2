package enroll

import (
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Context is a context of a kubeconfig: a cluster, as somebody reaches it.
type Context struct {
	// Name of the context, and the file that was named; "": the usual ones.
	Name, File string
	// Config connects with the credentials of the context.
	Config *rest.Config
	// Cluster is what the kubeconfig says of the cluster.
	Cluster *clientcmdapi.Cluster
}

// requestTimeout bounds one request to a cluster.
const requestTimeout = 15 * time.Second

// Load reads a context. file "" means what kubectl would read; context "" the current one.
func Load(file, context string) (*Context, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = file
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: context})
	raw, err := loader.RawConfig()
	if err != nil {
		return nil, fmt.Errorf("read the kubeconfig: %w", err)
	}
	if context == "" {
		context = raw.CurrentContext
	}
	if context == "" {
		return nil, fmt.Errorf("kubeconfig %s: it has no current context: set --context", fileName(file))
	}
	named, ok := raw.Contexts[context]
	if !ok {
		return nil, fmt.Errorf("kubeconfig %s: it has no context %q", fileName(file), context)
	}
	cluster, ok := raw.Clusters[named.Cluster]
	if !ok {
		return nil, fmt.Errorf("kubeconfig %s: context %q names no cluster of it", fileName(file), context)
	}
	config, err := loader.ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("kubeconfig %s: context %q: %w", fileName(file), context, err)
	}
	config.Timeout, config.UserAgent = requestTimeout, fieldManager
	config.QPS, config.Burst = 50, 100
	config.WarningHandler = rest.NoWarnings{}
	return &Context{Name: context, File: file, Config: config, Cluster: cluster}, nil
}

func fileName(file string) string {
	if file == "" {
		return "(the default)"
	}
	return file
}

// target is where the hub will find the member.
type target struct {
	server     string
	serverName string
	ca         []byte // PEM; nil: a certificate that everybody trusts
}

// targetOf works out what the hub has to know from what the person who registers knows. server and ca override it.
func targetOf(from *Context, server string, ca []byte) (target, error) {
	t := target{server: from.Cluster.Server, serverName: from.Cluster.TLSServerName, ca: ca}
	if server != "" {
		t.server = server
	} else if from.Cluster.ProxyURL != "" {
		return t, fmt.Errorf("context %q: it uses a proxy, which the hub does not: set --server to an address that the hub reaches", from.Name)
	}
	parsed, err := url.Parse(t.server)
	if err != nil || parsed.Scheme != "https" || parsed.Hostname() == "" || parsed.User != nil {
		return t, fmt.Errorf("server %q: must be an https:// URL with a host", t.server)
	}
	if t.ca == nil {
		if t.ca, err = caOf(from); err != nil {
			return t, err
		}
	}
	if t.ca != nil && !x509.NewCertPool().AppendCertsFromPEM(t.ca) {
		return t, errors.New("certificate authority: it contains no PEM certificate")
	}
	return t, nil
}

// caOf returns the CA of a context as PEM; nil: it names none.
func caOf(from *Context) ([]byte, error) {
	switch cluster := from.Cluster; {
	case cluster.InsecureSkipTLSVerify:
		return nil, fmt.Errorf("context %q: it does not verify the server, but the hub must: set --ca-file", from.Name)
	case len(cluster.CertificateAuthorityData) > 0:
		return cluster.CertificateAuthorityData, nil
	case cluster.CertificateAuthority != "":
		pem, err := os.ReadFile(cluster.CertificateAuthority) // loading made it absolute
		if err != nil {
			return nil, fmt.Errorf("context %q: read its certificate authority: %w", from.Name, err)
		}
		return pem, nil
	}
	return nil, nil
}

// loopback reports whether the server is on the machine of whoever asks.
func (t target) loopback() bool {
	parsed, err := url.Parse(t.server)
	if err != nil {
		return false
	}
	ip := net.ParseIP(parsed.Hostname())
	return parsed.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
}

// kubeconfig is what the hub gets: the server, whom to trust, and a token; nothing that has to be run or read.
func (t target) kubeconfig(name, token string) ([]byte, error) {
	config := clientcmdapi.NewConfig()
	config.Clusters[name] = &clientcmdapi.Cluster{Server: t.server, TLSServerName: t.serverName, CertificateAuthorityData: t.ca}
	config.AuthInfos[name] = &clientcmdapi.AuthInfo{Token: token}
	config.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	config.CurrentContext = name
	content, err := clientcmd.Write(*config)
	if err != nil {
		return nil, errors.New("write the member's kubeconfig: it cannot be encoded") // the cause might quote the token
	}
	return content, nil
}
