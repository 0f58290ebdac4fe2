package kubeconfig

import "fmt"

// Reasons of a [RefusedError].
const (
	ReasonNoKubeconfig            = "NoKubeconfig"            // the Secret has no data under the key kubeconfig
	ReasonInvalidKubeconfig       = "InvalidKubeconfig"       // the kubeconfig cannot be parsed, or contradicts itself
	ReasonInvalidName             = "InvalidName"             // the Secret's name, which is the member's, is no DNS label or is reserved
	ReasonNoCredentials           = "NoCredentials"           // the kubeconfig has no credentials
	ReasonExecNotAllowed          = "ExecNotAllowed"          // the kubeconfig runs a program (exec)
	ReasonAuthProviderNotAllowed  = "AuthProviderNotAllowed"  // the kubeconfig has an auth-provider
	ReasonFilePathNotAllowed      = "FilePathNotAllowed"      // the kubeconfig names a file instead of inline data
	ReasonProxyNotAllowed         = "ProxyNotAllowed"         // the kubeconfig names a proxy (proxy-url)
	ReasonImpersonationNotAllowed = "ImpersonationNotAllowed" // the kubeconfig impersonates (as, as-uid, as-groups, as-user-extra)
	ReasonBasicAuthNotAllowed     = "BasicAuthNotAllowed"     // the kubeconfig has a user name and a password
	ReasonInsecureNotAllowed      = "InsecureNotAllowed"      // the kubeconfig does not verify the server (insecure-skip-tls-verify, or http)
	ReasonServerNotAllowed        = "ServerNotAllowed"        // the server's address is outside clusters.allowedNetworks
	ReasonUnauthorized            = "Unauthorized"            // the member does not accept the credentials
	ReasonCertificateNotTrusted   = "CertificateNotTrusted"   // the member's certificate is not signed by the kubeconfig's authority, or is for another name
)

// RefusedError says why a registration is refused, for a person to fix. It never carries a secret value, nor anything
// else that is quoted from the kubeconfig but IP addresses.
type RefusedError struct {
	Reason  string // CamelCase, one of the Reason constants
	Message string // names the field and the rule
}

func (e *RefusedError) Error() string { return e.Message }

// Refuse makes a [RefusedError].
func Refuse(reason, format string, args ...any) *RefusedError {
	return &RefusedError{Reason: reason, Message: fmt.Sprintf(format, args...)}
}
