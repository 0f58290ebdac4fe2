package hub

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	fakeclient "sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/plimsoll-dev/plimsoll/clusters"
	"github.com/plimsoll-dev/plimsoll/clusters/kubeconfig"
)

// renewals is a keeper of one member's token, whose member issues tokens of an hour, with what it logs and how often it asks.
type renewals struct {
	*WithT
	hub    *fake.Clientset
	keeper *tokenKeeper
	status clusters.Status
	log    bytes.Buffer
	asked  int
	answer func(now time.Time) (string, error) // of the member
	runsOn *kubeconfig.Vetted                  // the member; nil: on whichever is registered
	refuse error                               // what the hub cluster answers to a write; nil: it takes it
}

func newRenewals(t *testing.T) *renewals {
	r := &renewals{WithT: NewWithT(t), hub: fake.NewClientset()}
	r.answer = func(now time.Time) (string, error) {
		return accountToken("hub", now.Unix(), now.Add(time.Hour).Unix()), nil
	}
	r.hub.PrependReactor("update", "secrets", func(clienttesting.Action) (bool, runtime.Object, error) { return r.refuse != nil, nil, r.refuse })
	member := fakeclient.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{
		SubResourceCreate: func(_ context.Context, _ client.Client, _ string, _, body client.Object, _ ...client.SubResourceCreateOption) error {
			r.asked++
			var err error
			body.(*authenticationv1.TokenRequest).Status.Token, err = r.answer(time.Now())
			return err
		},
	}).Build()
	r.status = clusters.Status{Name: "one", State: clusters.StateReady, Registration: clusters.Registration{Namespace: "members", Name: "one"}}
	r.keeper = &tokenKeeper{
		secrets: r.hub.CoreV1(), log: slog.New(slog.NewTextHandler(&r.log, nil)), tokens: map[string]*memberToken{}, renewAt: 66,
		statuses: func() []clusters.Status { return []clusters.Status{r.status} },
		member:   func(string) (tokenIssuer, error) { return issuer{member, r.runsOn}, nil },
		mayWrite: func(string) error { return nil },
	}
	return r
}

// register writes a registration with a token of an hour that was issued so long ago.
func (r *renewals) register(version string, ago time.Duration) string {
	issued := time.Now().Add(-ago)
	token := accountToken("hub", issued.Unix(), issued.Add(time.Hour).Unix())
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "members", Name: "one"}, Data: map[string][]byte{clusters.KubeconfigKey: kubeconfigOf(token)}}
	kind := corev1.SchemeGroupVersion.WithResource("secrets")
	_ = r.hub.Tracker().Delete(kind, "members", "one") // there is none at first
	r.Expect(r.hub.Tracker().Create(kind, secret, "members")).To(Succeed())
	r.status.Registration.ResourceVersion = version
	return token
}

func (r *renewals) shows(status metav1.ConditionStatus, reason string) string {
	is, ok := r.keeper.condition("one", time.Now())
	r.Expect(ok).To(BeTrue())
	r.Expect(string(is.Status)+" "+is.Reason).To(Equal(string(status)+" "+reason), is.Message)
	return is.Message
}

// registered is the kubeconfig in the registration.
func (r *renewals) registered(ctx context.Context) string {
	secret, err := r.hub.CoreV1().Secrets("members").Get(ctx, "one", metav1.GetOptions{})
	r.Expect(err).NotTo(HaveOccurred())
	return string(secret.Data[clusters.KubeconfigKey])
}

func TestARenewedTokenThatCannotBeWrittenIsReportedAndTheCurrentOneStays(t *testing.T) {
	r := newRenewals(t)
	inUse := r.register("1", 45*time.Minute)
	r.refuse = apierrors.NewForbidden(corev1.Resource("secrets"), "one", errors.New("no"))
	r.keeper.look(t.Context())
	r.Expect(r.shows(metav1.ConditionTrue, "RenewalFailed")).To(ContainSubstring("may not update the registration Secret"))
	r.Expect(r.log.String()).To(And(ContainSubstring("level=WARN"), ContainSubstring("cannot renew"), ContainSubstring("member=one")))
	r.Expect(r.registered(t.Context())).To(ContainSubstring(inUse))
	r.Expect(r.keeper.tokens["one"].token.Expires.Unix()).To(BeNumerically("<", time.Now().Add(16*time.Minute).Unix()), "the expiry that is shown is that of the token in use")

	r.keeper.look(t.Context())
	r.Expect(r.asked).To(Equal(1), "the next attempt is a minute later")
	r.keeper.tokens["one"].next = time.Time{}
	r.keeper.look(t.Context())
	r.Expect(r.asked).To(Equal(2))
	r.Expect(strings.Count(r.log.String(), "cannot renew")).To(Equal(1), "the same problem is logged once")

	r.refuse, r.keeper.tokens["one"].next = nil, time.Time{}
	r.keeper.look(t.Context())
	r.shows(metav1.ConditionFalse, "Valid")
	r.Expect(r.registered(t.Context())).NotTo(ContainSubstring(inUse))
}

// Somebody who is alarmed registers the member again: what went wrong with the token before is over.
func TestATokenThatIsRegisteredAgainHasNoProblemYet(t *testing.T) {
	r := newRenewals(t)
	r.register("1", 45*time.Minute)
	r.refuse = errors.New("the hub cluster is away")
	r.keeper.look(t.Context())
	r.Expect(r.shows(metav1.ConditionTrue, "RenewalFailed")).To(ContainSubstring("the hub cluster is away"))

	r.register("2", time.Minute)
	r.keeper.look(t.Context())
	r.shows(metav1.ConditionFalse, "Valid")
	r.Expect(r.asked).To(Equal(1))

	r.refuse = nil
	r.register("3", 45*time.Minute)
	r.keeper.look(t.Context())
	r.Expect(r.asked).To(Equal(2), "nor does one token wait for what happened to another")
}

// A Git repository that has the registration writes its own token back; two writers would go on without end.
func TestATokenThatSomethingPutsBackIsReportedAndNotRenewedAgain(t *testing.T) {
	r := newRenewals(t)
	inUse := r.register("1", 45*time.Minute)
	r.keeper.look(t.Context())
	r.shows(metav1.ConditionFalse, "Valid")
	r.Expect(r.registered(t.Context())).NotTo(ContainSubstring(inUse))

	r.register("2", 45*time.Minute)
	for range 2 {
		r.keeper.look(t.Context())
	}
	r.Expect(r.shows(metav1.ConditionTrue, "PutBack")).To(ContainSubstring(kubeconfig.TokenRenewalAnnotation + ": " + kubeconfig.RenewedElsewhere))
	r.Expect(r.asked).To(Equal(1))
	r.Expect(strings.Count(r.log.String(), "overwritten by an older one")).To(Equal(1))
	r.register("3", 46*time.Minute)
	r.keeper.look(t.Context())
	r.Expect(strings.Count(r.log.String(), "overwritten by an older one")).To(Equal(1), "it is logged once")
}

// Each token is nearly over when it comes, and expires a second later than the one before: there is always one to be renewed.
func TestAMemberThatIssuesTokensThatAreNearlyOverIsAskedOnceAMinute(t *testing.T) {
	r := newRenewals(t)
	r.register("1", 45*time.Minute)
	r.answer = func(now time.Time) (string, error) {
		return accountToken("hub", now.Add(-24*time.Hour).Unix(), now.Add(time.Hour+time.Duration(r.asked)*time.Second).Unix()), nil
	}
	for i := range 5 {
		r.keeper.look(t.Context())
		r.status.Registration.ResourceVersion = fmt.Sprint("renewed ", i)
	}
	r.Expect(r.asked).To(Equal(1))
	r.keeper.tokens["one"].next = time.Time{}
	r.keeper.look(t.Context())
	r.Expect(r.asked).To(Equal(2))
}

// The problem is kept, and copied into every list of members.
func TestWhatAMemberSaysOfARefusedRenewalIsBounded(t *testing.T) {
	r := newRenewals(t)
	r.register("1", 45*time.Minute)
	r.answer = func(time.Time) (string, error) { return "", errors.New(strings.Repeat("no\n", 1<<20)) }
	r.keeper.look(t.Context())
	message := r.shows(metav1.ConditionTrue, "RenewalFailed")
	r.Expect(len(message)).To(BeNumerically("<", 2<<10))
	r.Expect(message).NotTo(ContainSubstring("\n"))
	r.Expect(len(r.keeper.tokens["one"].problem)).To(BeNumerically("<", 2<<10))
}

// Who registers another server for a member that is Ready may leave the token as it is, and keep that server from becoming the member's: the one
// before runs on, and would issue a token that the hub then sends to the other. An older token in the new registration is due as well.
func TestAMemberThatRunsOnAnotherRegistrationIsAskedForNoToken(t *testing.T) {
	r := newRenewals(t)
	token := r.register("1", 45*time.Minute)
	former := strings.Replace(string(kubeconfigOf(token)), "10.0.0.1", "10.0.0.2", 1)
	vetted, err := kubeconfig.Vet("one", []byte(former), kubeconfig.Rules{})
	r.Expect(err).NotTo(HaveOccurred())
	r.runsOn = vetted
	r.keeper.look(t.Context())
	r.Expect(r.shows(metav1.ConditionTrue, "RenewalFailed")).To(ContainSubstring("runs on the registration before"))
	r.Expect(r.asked).To(BeZero())
	r.Expect(r.registered(t.Context())).To(Equal(string(kubeconfigOf(token))))

	r.runsOn, err = kubeconfig.Vet("one", kubeconfigOf(token), kubeconfig.Rules{})
	r.Expect(err).NotTo(HaveOccurred())
	r.keeper.tokens["one"].next = time.Time{}
	r.keeper.look(t.Context())
	r.shows(metav1.ConditionFalse, "Valid")
	r.Expect(r.asked).To(Equal(1))
}

// A registration that changes while the member answers is not overwritten: the API server compares the version.
func TestARenewedTokenIsWrittenToTheVersionThatWasRead(t *testing.T) {
	r := newRenewals(t)
	r.register("1", 45*time.Minute)
	secret, err := r.hub.CoreV1().Secrets("members").Get(t.Context(), "one", metav1.GetOptions{})
	r.Expect(err).NotTo(HaveOccurred())
	secret.ResourceVersion = "41"
	r.Expect(r.hub.Tracker().Update(corev1.SchemeGroupVersion.WithResource("secrets"), secret, "members")).To(Succeed())
	var written []string
	r.hub.PrependReactor("update", "secrets", func(action clienttesting.Action) (bool, runtime.Object, error) {
		written = append(written, action.(clienttesting.UpdateAction).GetObject().(*corev1.Secret).ResourceVersion)
		return false, nil, nil
	})
	r.keeper.look(t.Context())
	r.Expect(written).To(Equal([]string{"41"}))
}
