package kinds

import (
	"context"
	"fmt"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"go.uber.org/goleak"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/plimsoll-dev/plimsoll/clusters"
	"github.com/plimsoll-dev/plimsoll/reconcile/module"
	"github.com/plimsoll-dev/plimsoll/reconcile/webapp"
	"github.com/plimsoll-dev/plimsoll/webhook"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var tokenKey = []byte(strings.Repeat("k", 32))

// registered is the one registration, of "eu".
func registered(member string) (clusters.Registration, bool) {
	return clusters.Registration{UID: "1"}, member == "eu"
}

func current(g Gomega, tokens *webhook.Tokens, member string) string {
	token, err := tokens.Current(member)
	g.Expect(err).NotTo(HaveOccurred())
	return token
}

// site is one member "eu", with the options of what keeps kinds there.
type site struct {
	options webhook.InstallerOptions
	kinds   []module.Resource
	client  client.Client
	wanted  webhook.Wanted
	// namespaces that "eu" is registered for
	namespaces []string
	events     []string
	patches    int
	refuse     error // what the next patches are answered with
}

func newSite(t *testing.T, objects ...client.Object) *site {
	t.Helper()
	g := NewWithT(t)
	base, err := webhook.ParseBaseURL("https://hub.example:9443")
	g.Expect(err).NotTo(HaveOccurred())
	s := &site{
		kinds:  []module.Resource{webapp.Resource(webapp.Policy{})},
		wanted: webhook.Wanted{BaseURL: base, Bundle: []byte("bundle"), EnabledLabel: "plimsoll.dev/enabled"},
	}
	s.client = fake.NewClientBuilder().WithObjects(objects...).WithInterceptorFuncs(interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
			if s.patches++; s.refuse != nil {
				return s.refuse
			}
			return c.Patch(ctx, obj, patch, opts...)
		},
	}).Build()
	s.options = webhook.InstallerOptions{
		Tokens: webhook.NewTokens(tokenKey, registered), Wanted: func() webhook.Wanted { return s.wanted },
		Namespaces: func(string) []string { return s.namespaces },
	}
	return s
}

func (s *site) Normal(reason, format string, args ...any) {
	s.events = append(s.events, "Normal "+reason+" "+fmt.Sprintf(format, args...))
}

func (s *site) Warning(reason, format string, args ...any) {
	s.events = append(s.events, "Warning "+reason+" "+fmt.Sprintf(format, args...))
}

func (s *site) tokenFor(g Gomega, purpose webhook.Purpose) string {
	return current(g, s.options.Tokens.For(purpose), "eu")
}
