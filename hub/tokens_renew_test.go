package hub

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	"sigs.k8s.io/controller-runtime/pkg/client"
	fakeclient "sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/plimsoll-dev/plimsoll/clusters"
	"github.com/plimsoll-dev/plimsoll/clusters/kubeconfig"
)

// accountToken makes a token of account n/NAME, with a signature that nobody checks.
func accountToken(name string, issued, expires int64) string {
	return tokenOfSubject("system:serviceaccount:n:"+name, issued, expires)
}

func tokenOfSubject(subject string, issued, expires int64) string {
	payload := fmt.Sprintf(`{"sub":"%s","iat":%d,"exp":%d}`, subject, issued, expires)
	return "e30." + base64.RawURLEncoding.EncodeToString([]byte(payload)) + ".c2ln"
}

func kubeconfigOf(token string) []byte {
	return []byte(`{"apiVersion":"v1","kind":"Config","current-context":"c","clusters":[{"name":"k","cluster":{"server":"https://10.0.0.1"}}],` +
		`"contexts":[{"name":"c","context":{"cluster":"k","user":"u"}}],"users":[{"name":"u","user":{"token":"` + token + `"}}]}`)
}

// issuer is a member that runs on a kubeconfig; nil: on whichever is registered.
type issuer struct {
	client.Client
	runsOn *kubeconfig.Vetted
}

func (i issuer) GetClient() client.Client      { return i.Client }
func (i issuer) RunsOn(registered []byte) bool { return i.runsOn == nil || i.runsOn.MadeOf(registered) }

// TestAMembersTokenIsReplacedByAnotherOfItsAccountThatExpiresLater has a member answer with tokens of its choice.
func TestAMembersTokenIsReplacedByAnotherOfItsAccountThatExpiresLater(t *testing.T) {
	inUse := accountToken("hub", 1000, 1060)
	for name, c := range map[string]struct {
		stored, answer string
		lost           bool // the member, before the token came
		written        bool
	}{
		"as it should be":       {stored: inUse, answer: accountToken("hub", 1040, 1640), written: true},
		"of another account":    {stored: inUse, answer: accountToken("other", 1040, 1640)},
		"of another namespace":  {stored: inUse, answer: tokenOfSubject("system:serviceaccount:m:hub", 1040, 1640)},
		"that ends at the same": {stored: inUse, answer: accountToken("hub", 1040, 1060)},
		"of nobody":             {stored: inUse, answer: "a.b.c"},
		"changed meanwhile":     {stored: accountToken("hub", 1010, 1070), answer: accountToken("hub", 1040, 1640)},
		"changed to another's":  {stored: accountToken("other", 1000, 1060), answer: accountToken("hub", 1040, 1640)},
		"owned by another":      {stored: inUse, answer: accountToken("hub", 1040, 1640), lost: true},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "members", Name: "one"}, Data: map[string][]byte{clusters.KubeconfigKey: kubeconfigOf(c.stored)}}
			hub := fake.NewClientset(secret)
			var life time.Duration
			var asked []string
			member := fakeclient.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{
				SubResourceCreate: func(_ context.Context, _ client.Client, resource string, of, body client.Object, _ ...client.SubResourceCreateOption) error {
					asked = append(asked, resource+" of "+client.ObjectKeyFromObject(of).String())
					request := body.(*authenticationv1.TokenRequest)
					life = time.Duration(*request.Spec.ExpirationSeconds) * time.Second
					request.Status.Token = c.answer
					return nil
				},
			}).Build()
			keeper := &tokenKeeper{
				secrets: hub.CoreV1(), log: slog.New(slog.DiscardHandler), tokens: map[string]*memberToken{},
				member: func(string) (tokenIssuer, error) { return issuer{Client: member}, nil },
				mayWrite: func(string) error {
					if c.lost {
						return errors.New("another replica owns it")
					}
					return nil
				},
			}
			known, ok := kubeconfig.TokenOf(kubeconfigOf(inUse))
			g.Expect(ok).To(BeTrue())
			status := &clusters.Status{Name: "one", Registration: clusters.Registration{Namespace: "members", Name: "one"}}
			_, err := keeper.renew(t.Context(), status, known)
			g.Expect(err == nil).To(Equal(c.written), "%v", err)
			stored, err := hub.CoreV1().Secrets("members").Get(t.Context(), "one", metav1.GetOptions{})
			g.Expect(err).NotTo(HaveOccurred())
			want, _ := kubeconfig.TokenOf(kubeconfigOf(map[bool]string{true: c.answer, false: c.stored}[c.written]))
			is, _ := kubeconfig.TokenOf(stored.Data[clusters.KubeconfigKey])
			g.Expect(is).To(Equal(want))
			if c.stored != inUse {
				g.Expect(asked).To(BeEmpty(), "the member is asked for nothing on behalf of what is no longer registered")
			} else {
				g.Expect(asked).To(Equal([]string{"token of n/hub"}), "the account is that of the registration")
			}
			if life > 0 {
				g.Expect(life).To(Equal(leastTokenLife), "no shorter one is granted, and a minute is less")
			}
		})
	}
}
