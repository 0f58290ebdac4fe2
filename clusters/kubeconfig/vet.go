package kubeconfig

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"fmt"
	"net/netip"
	"net/url"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
)

// SecretKey is the key of a registration Secret that holds the kubeconfig, for multicluster-runtime as well.
const SecretKey = "kubeconfig"

// Vetted is a kubeconfig that was taken apart and rebuilt from what is allowed. It holds credentials: it prints as the
// server's address only, and its configuration leaves the package as a transport, never as data.
type Vetted struct {
	// Server is the API server's host and port.
	Server string
	// Namespaces are those that the member is registered for, sorted; nil: the whole cluster. The caller of [Vet] sets them.
	Namespaces []string

	config *rest.Config
	rules  Rules
	digest [sha256.Size]byte // of what it was vetted from
}

// MadeOf reports whether it was vetted from exactly these bytes.
func (v *Vetted) MadeOf(kubeconfig []byte) bool { return v.digest == sha256.Sum256(kubeconfig) }

// Endpoint identifies the cluster by where it is and how it is trusted, for members that do not show who they are.
func (v *Vetted) Endpoint() string {
	of := v.config
	sum := sha256.Sum256([]byte(of.Host + "\x00" + of.ServerName + "\x00" + of.CAFile + "\x00" + string(of.CAData)))
	return "endpoint " + hex.EncodeToString(sum[:])
}

// String hides the credentials.
func (v *Vetted) String() string { return "kubeconfig for " + v.Server }

// GoString hides the credentials.
func (v *Vetted) GoString() string { return v.String() }

// Vet rebuilds a client configuration for the member name out of the current context of kubeconfig, taking over only
// what rules allow. It does no I/O: file paths and programs that are allowed are not looked at, and the address of a
// server that is given by name is checked when it is dialled. Every error is a [*RefusedError] that names the field and
// the rule and quotes nothing of the kubeconfig.
func Vet(name string, kubeconfig []byte, rules Rules) (*Vetted, error) {
	if err := vetName(name); err != nil {
		return nil, err
	}
	if len(strings.TrimSpace(string(kubeconfig))) == 0 {
		return nil, Refuse(ReasonNoKubeconfig, "the Secret has no data under the key %q", SecretKey)
	}
	cluster, user, err := currentContext(kubeconfig)
	if err != nil {
		return nil, err
	}
	config := &rest.Config{}
	server, err := vetServer(cluster, rules, config)
	if err != nil {
		return nil, err
	}
	if err := vetTrust(cluster, rules, config); err != nil {
		return nil, err
	}
	if err := vetUser(user, rules, config); err != nil {
		return nil, err
	}
	return &Vetted{Server: server, config: config, rules: rules, digest: sha256.Sum256(kubeconfig)}, nil
}

// vetName asks for a DNS label, because the name becomes a label value, a URL segment and a metric label.
func vetName(name string) error {
	if problems := validation.IsDNS1123Label(name); len(problems) > 0 {
		return Refuse(ReasonInvalidName, "the Secret's name is the member's name, and must be a DNS label: %s", problems[0])
	}
	return nil
}

// currentContext parses kubeconfig and returns the cluster and the user of its current context. Parsers quote what they
// stumble over, so nothing of their errors is passed on but the line.
func currentContext(kubeconfig []byte) (*api.Cluster, *api.AuthInfo, error) {
	parsed, err := clientcmd.Load(kubeconfig)
	if err != nil {
		return nil, nil, Refuse(ReasonInvalidKubeconfig, "kubeconfig: not a valid kubeconfig%s", atLine(err))
	}
	if parsed.CurrentContext == "" {
		return nil, nil, Refuse(ReasonInvalidKubeconfig, "kubeconfig: current-context is missing")
	}
	context := parsed.Contexts[parsed.CurrentContext]
	if context == nil {
		return nil, nil, Refuse(ReasonInvalidKubeconfig, "kubeconfig: current-context names no entry of contexts")
	}
	cluster := parsed.Clusters[context.Cluster]
	if cluster == nil {
		return nil, nil, Refuse(ReasonInvalidKubeconfig, "kubeconfig: the current context's cluster names no entry of clusters")
	}
	user := parsed.AuthInfos[context.AuthInfo]
	if user == nil {
		return nil, nil, Refuse(ReasonInvalidKubeconfig, "kubeconfig: the current context's user names no entry of users")
	}
	return cluster, user, nil
}

var lineNumber = regexp.MustCompile(`\bline (\d{1,6})\b`)

// atLine gives " (line 3)" when the parser's error has it.
func atLine(err error) string {
	if match := lineNumber.FindStringSubmatch(err.Error()); match != nil {
		return fmt.Sprintf(" (line %s)", match[1])
	}
	return ""
}

// vetServer takes over server, proxy-url and tls-server-name, and returns the server's host and port.
func vetServer(cluster *api.Cluster, rules Rules, into *rest.Config) (string, error) {
	if cluster.Server == "" {
		return "", Refuse(ReasonInvalidKubeconfig, "clusters[].cluster.server: is missing")
	}
	server, err := vetURL("clusters[].cluster.server", cluster.Server, rules)
	if err != nil {
		return "", err
	}
	switch {
	case server.Scheme == "https":
	case server.Scheme == "http" && rules.AllowInsecure:
	case server.Scheme == "http":
		return "", Refuse(ReasonInsecureNotAllowed, "clusters[].cluster.server: http:// is not allowed, only https://")
	default:
		return "", Refuse(ReasonInvalidKubeconfig, "clusters[].cluster.server: must be an https:// URL")
	}
	if server.Port() == "" {
		server.Host += map[string]string{"https": ":443", "http": ":80"}[server.Scheme]
	}
	if name := cluster.TLSServerName; name != "" && len(validation.IsDNS1123Subdomain(name)) > 0 && !isIP(name) {
		return "", Refuse(ReasonInvalidKubeconfig, "clusters[].cluster.tls-server-name: must be a DNS name or an IP address")
	}
	into.Host = strings.TrimSuffix(server.String(), "/")
	into.ServerName = cluster.TLSServerName
	into.DisableCompression = cluster.DisableCompression
	return server.Host, vetProxy(cluster.ProxyURL, rules, into)
}

func vetProxy(proxy string, rules Rules, into *rest.Config) error {
	if proxy == "" {
		return nil
	}
	if !rules.AllowProxy {
		return Refuse(ReasonProxyNotAllowed, "clusters[].cluster.proxy-url: a proxy is not allowed")
	}
	parsed, err := url.Parse(proxy)
	if err != nil || parsed.Host == "" || (parsed.Scheme != "http" && parsed.Scheme != "https" && parsed.Scheme != "socks5") {
		return Refuse(ReasonInvalidKubeconfig, "clusters[].cluster.proxy-url: must be an http://, https:// or socks5:// URL")
	}
	into.Proxy = httpProxy(parsed)
	return nil
}

// vetURL parses a server's URL, and checks its host at once when that is an IP address.
func vetURL(field, text string, rules Rules) (*url.URL, error) {
	parsed, err := url.Parse(text)
	if err != nil || parsed.Hostname() == "" || parsed.Opaque != "" {
		return nil, Refuse(ReasonInvalidKubeconfig, "%s: must be a URL with a host", field)
	}
	if parsed.User != nil || parsed.RawQuery != "" || parsed.Fragment != "" {
		return nil, Refuse(ReasonInvalidKubeconfig, "%s: must carry no user, query or fragment", field)
	}
	if ip, err := netip.ParseAddr(parsed.Hostname()); err == nil {
		if err := rules.checkAddr(ip); err != nil {
			return nil, Refuse(ReasonServerNotAllowed, "%s: %v", field, err)
		}
	} else if len(validation.IsDNS1123Subdomain(strings.ToLower(parsed.Hostname()))) > 0 {
		return nil, Refuse(ReasonInvalidKubeconfig, "%s: the host must be a DNS name or an IP address", field)
	}
	return parsed, nil
}

func isIP(text string) bool {
	_, err := netip.ParseAddr(text)
	return err == nil
}

// vetTrust takes over what reports whether the server is the right one.
func vetTrust(cluster *api.Cluster, rules Rules, into *rest.Config) error {
	if cluster.InsecureSkipTLSVerify {
		if !rules.AllowInsecure {
			return Refuse(ReasonInsecureNotAllowed, "clusters[].cluster.insecure-skip-tls-verify: must not be set, the server has to be verified")
		}
		if len(cluster.CertificateAuthorityData) > 0 || cluster.CertificateAuthority != "" {
			return Refuse(ReasonInvalidKubeconfig, "clusters[].cluster.insecure-skip-tls-verify: contradicts a certificate authority")
		}
		into.Insecure = true
	}
	if cluster.CertificateAuthority != "" {
		if !rules.AllowFiles {
			return refuseFile("clusters[].cluster.certificate-authority", "certificate-authority-data")
		}
		into.CAFile = cluster.CertificateAuthority
	}
	if data := cluster.CertificateAuthorityData; len(data) > 0 {
		if !x509.NewCertPool().AppendCertsFromPEM(data) {
			return Refuse(ReasonInvalidKubeconfig, "clusters[].cluster.certificate-authority-data: holds no PEM certificate")
		}
		into.CAData, into.CAFile = data, ""
	}
	return nil
}

// vetUser takes over the credentials.
func vetUser(user *api.AuthInfo, rules Rules, into *rest.Config) error {
	if user.AuthProvider != nil {
		return Refuse(ReasonAuthProviderNotAllowed, "users[].user.auth-provider: is not supported, use a token or a client certificate")
	}
	for _, vet := range []func(*api.AuthInfo, Rules, *rest.Config) error{vetExec, vetCertificate, vetToken, vetBasic, vetImpersonation} {
		if err := vet(user, rules, into); err != nil {
			return err
		}
	}
	if into.ExecProvider == nil && len(into.CertData) == 0 && into.CertFile == "" &&
		into.BearerToken == "" && into.BearerTokenFile == "" && into.Username == "" {
		return Refuse(ReasonNoCredentials, "users[].user: holds no credentials, neither token nor client-certificate-data")
	}
	return nil
}

func vetExec(user *api.AuthInfo, rules Rules, into *rest.Config) error {
	if user.Exec == nil {
		return nil
	}
	if !rules.AllowExec {
		return Refuse(ReasonExecNotAllowed, "users[].user.exec: running a program is not allowed, use a token or a client certificate")
	}
	exec := user.Exec.DeepCopy()
	exec.InteractiveMode, exec.StdinUnavailable = api.NeverExecInteractiveMode, true
	exec.InstallHint = ""
	into.ExecProvider = exec
	return nil
}

func vetCertificate(user *api.AuthInfo, rules Rules, into *rest.Config) error {
	if !rules.AllowFiles {
		if user.ClientCertificate != "" {
			return refuseFile("users[].user.client-certificate", "client-certificate-data")
		}
		if user.ClientKey != "" {
			return refuseFile("users[].user.client-key", "client-key-data")
		}
	}
	into.CertFile, into.KeyFile = user.ClientCertificate, user.ClientKey
	into.CertData, into.KeyData = user.ClientCertificateData, user.ClientKeyData
	haveCert, haveKey := into.CertFile != "" || len(into.CertData) > 0, into.KeyFile != "" || len(into.KeyData) > 0
	if haveCert != haveKey {
		return Refuse(ReasonInvalidKubeconfig, "users[].user: client-certificate-data and client-key-data need each other")
	}
	if len(into.CertData) > 0 && len(into.KeyData) > 0 {
		if _, err := tls.X509KeyPair(into.CertData, into.KeyData); err != nil {
			return Refuse(ReasonInvalidKubeconfig, "users[].user: client-certificate-data and client-key-data are no PEM key pair")
		}
	}
	return nil
}

func vetToken(user *api.AuthInfo, rules Rules, into *rest.Config) error {
	if user.TokenFile != "" {
		if !rules.AllowFiles {
			return refuseFile("users[].user.tokenFile", "token")
		}
		into.BearerTokenFile = user.TokenFile
	}
	if strings.ContainsFunc(user.Token, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
		return Refuse(ReasonInvalidKubeconfig, "users[].user.token: must be printable ASCII without spaces")
	}
	into.BearerToken = user.Token
	return nil
}

func vetBasic(user *api.AuthInfo, rules Rules, into *rest.Config) error {
	if user.Username == "" && user.Password == "" {
		return nil
	}
	if !rules.AllowBasicAuth {
		return Refuse(ReasonBasicAuthNotAllowed, "users[].user.username and password: basic authentication is not allowed")
	}
	into.Username, into.Password = user.Username, user.Password
	return nil
}

func vetImpersonation(user *api.AuthInfo, rules Rules, into *rest.Config) error {
	if user.Impersonate == "" && user.ImpersonateUID == "" && len(user.ImpersonateGroups) == 0 && len(user.ImpersonateUserExtra) == 0 {
		return nil
	}
	if !rules.AllowImpersonation {
		return Refuse(ReasonImpersonationNotAllowed, "users[].user.as, as-uid, as-groups and as-user-extra: impersonation is not allowed")
	}
	into.Impersonate = rest.ImpersonationConfig{
		UserName: user.Impersonate, UID: user.ImpersonateUID, Groups: user.ImpersonateGroups, Extra: user.ImpersonateUserExtra,
	}
	return nil
}

func refuseFile(field, instead string) error {
	return Refuse(ReasonFilePathNotAllowed, "%s: reading the hub's files is not allowed, use %s", field, instead)
}
