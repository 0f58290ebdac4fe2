package clusters

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plimsoll-dev/plimsoll/clusters/internal/intake"
)

const (
	// IdentityLease is the name of the Lease through which two registrations show whether they lead to one cluster. It is in the
	// namespace of the hub's account in the member.
	IdentityLease = "plimsoll-identity"
	// IdentityAnnotation of a registration names the namespace of that Lease in the member. Without it the member cannot show
	// anything, and of two registrations that say they are one cluster the older one counts.
	IdentityAnnotation = "plimsoll.dev/identity"
	// NonceAnnotation of the Lease is what the hub writes.
	NonceAnnotation = "plimsoll.dev/identity-nonce"
)

// identityPath is where the Lease is.
func identityPath(namespace string) string {
	return "/apis/coordination.k8s.io/v1/namespaces/" + namespace + "/leases/" + IdentityLease
}

// isIdentity reports whether path is that of the Lease. The URL of a server may have a path of its own in front.
func isIdentity(path string) bool {
	before, found := strings.CutSuffix(path, "/leases/"+IdentityLease)
	namespace := before[strings.LastIndex(before, "/")+1:]
	return found && strings.HasSuffix(before, "/apis/coordination.k8s.io/v1/namespaces/"+namespace)
}

// writeNonce leaves a nonce in the member's Lease, and returns which version of the Lease that made.
func (p *prober) writeNonce(ctx context.Context, namespace, nonce string) (version string, err error) {
	body := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, NonceAnnotation, nonce)
	answer, err := p.rest.Patch(types.MergePatchType).AbsPath(identityPath(namespace)).Body([]byte(body)).MaxRetries(0).Do(ctx).Raw()
	if err != nil {
		return "", err
	}
	lease, err := parseLease(namespace, answer)
	return lease.ResourceVersion, err
}

// readNonce returns the nonce that the member's Lease holds, "" for none, and the version of the Lease.
func (p *prober) readNonce(ctx context.Context, namespace string) (nonce, version string, err error) {
	body, err := p.get(ctx, identityPath(namespace))
	if err != nil {
		return "", "", err
	}
	lease, err := parseLease(namespace, body)
	return lease.Annotations[NonceAnnotation], lease.ResourceVersion, err
}

// parseLease reads the Lease of a namespace as a member sent it.
func parseLease(namespace string, body []byte) (lease metav1.PartialObjectMetadata, err error) {
	if json.Unmarshal(body, &lease) != nil {
		return lease, fmt.Errorf("read Lease %s/%s: %w", namespace, IdentityLease, intake.ErrUnreadable)
	}
	return lease, nil
}

// identityNamespace is what a registration says about its Lease; "": nothing that could be used.
func identityNamespace(annotations map[string]string) string {
	if value := annotations[IdentityAnnotation]; namespacePattern.MatchString(value) {
		return value
	}
	return ""
}

var namespacePattern = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)
