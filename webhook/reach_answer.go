package webhook

import (
	"net"
	"net/url"
	"strings"
)

// outcomeCheck is that of a pod by which a hub checks whether it is called.
const outcomeCheck = "check"

// isCheck reports whether the key of an annotation is that of a check, which every replica answers.
func isCheck(key []byte) bool { return string(key) == checkAnnotation }

// reads reports which labels and annotations of a pod are looked at.
func (h *Handler) reads(key []byte) bool { return isCheck(key) || h.options.Placer.Reads(key) }

// checkPatch marks the pod of a check; false: the call is none. Only dry runs are.
func checkPatch(call *review, into []byte) (patch []byte, is bool) {
	nonce := call.pod.Annotations[checkAnnotation]
	if !call.pod.DryRun || !plainUID(nonce) {
		return nil, false
	}
	into = append(into, `[{"op":"add","path":"/metadata/annotations/`...)
	into = append(into, strings.ReplaceAll(checkedAnnotation, "/", "~1")...)
	into = append(into, `","value":"`...)
	into = append(into, nonce...)
	return append(into, `"}]`...), true
}

// ClusterLocal reports whether a URL is a name that only the hub's own cluster resolves: that of a Service.
func ClusterLocal(base *url.URL) bool {
	host := strings.TrimSuffix(base.Hostname(), ".")
	if net.ParseIP(host) != nil {
		return false
	}
	return strings.HasSuffix(host, ".svc") || strings.Contains(host, ".svc.")
}

// hintOf says what may be wrong with a URL.
func hintOf(base *url.URL) string {
	if ClusterLocal(base) {
		return ". That is the name of a Service, which only the hub's own cluster resolves: set webhook.url to an address that the members reach"
	}
	return ". Can it reach that address, and does it trust the certificate there?"
}
