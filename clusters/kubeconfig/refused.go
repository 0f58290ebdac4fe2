package kubeconfig

import "fmt"

// Reasons of a [RefusedError].
const (
	ReasonNoKubeconfig            = "NoKubeconfig"            // the Secret has no data under the key kubeconfig
	ReasonInvalidKubeconfig       = "InvalidKubeconfig"       // it cannot be parsed, or contradicts itself
	ReasonInvalidName             = "InvalidName"             // the Secret's name is no DNS label, or is reserved
	ReasonNoCredentials           = "NoCredentials"           // the kubeconfig would connect as anonymous
	ReasonExecNotAllowed          = "ExecNotAllowed"          // exec
	ReasonAuthProviderNotAllowed  = "AuthProviderNotAllowed"  // auth-provider
	ReasonFilePathNotAllowed      = "FilePathNotAllowed"      // a file of the hub instead of inline data
	ReasonProxyNotAllowed         = "ProxyNotAllowed"         // proxy-url
	ReasonImpersonationNotAllowed = "ImpersonationNotAllowed" // as, as-uid, as-groups, as-user-extra
	ReasonBasicAuthNotAllowed     = "BasicAuthNotAllowed"     // username, password
	ReasonInsecureNotAllowed      = "InsecureNotAllowed"      // insecure-skip-tls-verify, http://
	ReasonServerNotAllowed        = "ServerNotAllowed"        // the server's address is outside the allowed networks
	ReasonUnauthorized            = "Unauthorized"            // the member does not accept the credentials
	ReasonCertificateNotTrusted   = "CertificateNotTrusted"   // the member's certificate does not fit the CA or the name
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
