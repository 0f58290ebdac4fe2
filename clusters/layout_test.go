package clusters

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
)

func TestARegistrationIsKeptApartFromTheHubsKeysOrSaysSo(t *testing.T) {
	for name, c := range map[string]struct {
		layout             layout
		hub, registrations string
		reason             string
		refused            bool
	}{
		"apart and typed":                        {layout{namespace: "members", kind: KubeconfigType}, "hub", "members", "", false},
		"the old layout":                         {layout{namespace: "hub", kind: corev1.SecretTypeOpaque}, "hub", "hub", ReasonSharedNamespace, false},
		"the old layout, typed":                  {layout{namespace: "hub", kind: KubeconfigType}, "hub", "hub", ReasonSharedNamespace, false},
		"left behind in the old layout":          {layout{namespace: "hub", kind: corev1.SecretTypeOpaque}, "hub", "members", ReasonSharedNamespace, false},
		"of another type":                        {layout{namespace: "members", kind: corev1.SecretTypeOpaque}, "hub", "members", ReasonSecretType, true},
		"moved, and the old one not yet deleted": {layout{namespace: "members", kind: KubeconfigType, unused: true}, "hub", "members", ReasonUnusedSecret, false},
		"nobody says where the hub's keys are":   {layout{namespace: "members", kind: corev1.SecretTypeOpaque}, "", "members", "", false},
	} {
		g := NewWithT(t)
		found := c.layout.judge(c.hub, c.registrations)
		g.Expect(found.reason).To(Equal(c.reason), name)
		g.Expect(found.refused).To(Equal(c.refused), name)
	}
}
