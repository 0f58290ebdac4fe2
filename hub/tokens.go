package hub

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"sync"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/clusters"
	"github.com/plimsoll-dev/plimsoll/clusters/kubeconfig"
	"github.com/plimsoll-dev/plimsoll/clusters/plain"
	"github.com/plimsoll-dev/plimsoll/hub/config"
)

const (
	tokenCheck     = 5 * time.Second  // between two looks at what is known about the tokens
	tokenRetry     = time.Minute      // after a renewal
	tokenTimeout   = 20 * time.Second // for one renewal
	leastTokenLife = 10 * time.Minute // Kubernetes grants no shorter one

	// maxTokenProblem is how many bytes are kept of why a token was not renewed, which the member may have said.
	maxTokenProblem = 1 << 10
)

// tokenKeeper renews the tokens with which the hub reaches its members before they expire, and shows when they do. The replica that
// owns a member renews: it requests a token in the member with the one in use, and writes it into the registration Secret, from
// where every replica takes it. A member that does not run on that Secret as it is now is not asked: it would answer with a token of one server
// that the hub then shows to another. What fails leaves the token in use as it is, and is tried again. It is safe for concurrent use.
type tokenKeeper struct {
	statuses func() []clusters.Status
	member   func(name string) (tokenIssuer, error)
	secrets  corev1client.SecretsGetter // of the hub cluster
	mayWrite func(member string) error  // nil: this replica owns the member
	renewAt  int                        // the share of its life, in percent, after which a token is renewed; 0: never
	log      *slog.Logger

	mu     sync.Mutex
	tokens map[string]*memberToken // by member
}

// tokenIssuer is a member that is asked for tokens: a [clusters.Member].
type tokenIssuer interface {
	GetClient() client.Client
	RunsOn(kubeconfig []byte) bool
}

// memberToken is what is known about one member's token.
type memberToken struct {
	version  string // of the registration Secret that it was read from
	token    kubeconfig.Token
	known    bool             // it is one of a service account
	what     string           // is other, for people; "": there is none
	other    kubeconfig.Token // the first to expire of the credentials that the hub cannot renew
	external bool
	written  time.Time // when the newest token that this replica wrote expires
	putBack  bool      // somebody wrote an older one over it
	problem  string    // why it was not renewed
	next     time.Time // no attempt before
}

func newTokenKeeper(h *Hub, secrets corev1client.SecretsGetter) *tokenKeeper {
	return &tokenKeeper{
		statuses: h.provider.Statuses, secrets: secrets, mayWrite: h.ownership.MayWrite, renewAt: h.config.Clusters.TokenRenewalPercent,
		log: h.log, tokens: map[string]*memberToken{},
		member: func(name string) (tokenIssuer, error) {
			member, ok := h.provider.Member(name)
			if !ok {
				return nil, fmt.Errorf("member %s is not connected", name)
			}
			return member, nil
		},
	}
}

// run manages the tokens until the context ends.
func (k *tokenKeeper) run(ctx context.Context) error {
	every := time.NewTicker(tokenCheck)
	defer every.Stop()
	for {
		k.look(ctx)
		select {
		case <-ctx.Done():
			return nil
		case <-every.C:
		}
	}
}

// look reads what has changed, and renews what is due, one after the other: a member that does not answer costs a renewal's time.
func (k *tokenKeeper) look(ctx context.Context) {
	statuses := k.statuses()
	there := map[string]bool{}
	for i := range statuses {
		status := &statuses[i]
		there[status.Name] = true
		known := k.read(ctx, status)
		if known == nil || !known.due(time.Now(), k.renewAt) || k.mayWrite(status.Name) != nil || !usable(status.State) {
			continue
		}
		token, err := k.renew(ctx, status, known.token)
		k.renewed(status.Name, token, err)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	maps.DeleteFunc(k.tokens, func(member string, _ *memberToken) bool { return !there[member] })
}

func usable(state clusters.State) bool {
	return state == clusters.StateReady || state == clusters.StateDegraded
}

// due reports whether a token is to be renewed now.
func (t *memberToken) due(now time.Time, renewAt int) bool {
	return renewAt > 0 && t.known && !t.external && !t.putBack && t.token.Life() > 0 && t.token.Spent(now) >= renewAt && !now.Before(t.next)
}

// read brings what is known about a member's token up to date, and returns a copy; nil: the Secret cannot be read.
func (k *tokenKeeper) read(ctx context.Context, status *clusters.Status) *memberToken {
	registration := status.Registration
	k.mu.Lock()
	known := k.tokens[status.Name]
	k.mu.Unlock()
	if known == nil || known.version != registration.ResourceVersion {
		ctx, cancel := context.WithTimeout(ctx, tokenTimeout)
		defer cancel()
		secret, err := k.secrets.Secrets(registration.Namespace).Get(ctx, registration.Name, metav1.GetOptions{})
		if err != nil {
			return nil // the provider says so
		}
		known = k.learn(status.Name, registration.ResourceVersion, secret)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	return new(*known)
}

// learn notes what a registration Secret says.
func (k *tokenKeeper) learn(member, version string, secret *corev1.Secret) *memberToken {
	k.mu.Lock()
	defer k.mu.Unlock()
	known := k.tokens[member]
	if known == nil {
		known = &memberToken{}
		k.tokens[member] = known
	}
	before, was := known.putBack, known.token
	known.version, known.external = version, secret.Annotations[kubeconfig.TokenRenewalAnnotation] == kubeconfig.RenewedElsewhere
	known.token, known.known = kubeconfig.TokenOf(secret.Data[clusters.KubeconfigKey])
	known.what, known.other, _ = kubeconfig.Unrenewable(secret.Data[clusters.KubeconfigKey])
	if known.token != was {
		known.problem, known.next = "", time.Time{} // they were about the one before
	}
	known.putBack = known.known && known.token.Expires.Before(known.written)
	if known.putBack && !before {
		k.log.Warn("the renewed token was overwritten by an older one: the hub no longer renews it", "member", member,
			"expires", known.token.Expires, "annotate", kubeconfig.TokenRenewalAnnotation+"="+kubeconfig.RenewedElsewhere)
	}
	return known
}

// renew requests a token of the same account and life, and writes it into the registration Secret. It returns when it expires.
func (k *tokenKeeper) renew(ctx context.Context, status *clusters.Status, of kubeconfig.Token) (kubeconfig.Token, error) {
	ctx, cancel := context.WithTimeout(ctx, tokenTimeout)
	defer cancel()
	secrets := k.secrets.Secrets(status.Registration.Namespace)
	secret, err := secrets.Get(ctx, status.Registration.Name, metav1.GetOptions{})
	if err != nil {
		return of, fmt.Errorf("read the registration: %w", err)
	}
	if now, ok := kubeconfig.TokenOf(secret.Data[clusters.KubeconfigKey]); !ok || now != of {
		return of, errors.New("the registration has changed meanwhile")
	}
	member, err := k.member(status.Name)
	if err != nil {
		return of, err
	}
	if !member.RunsOn(secret.Data[clusters.KubeconfigKey]) { // and stays what it is: of the Secret, the write below makes sure
		return of, fmt.Errorf("member %s still runs on the registration before: a token is renewed only by the server that the registration names now", status.Name)
	}
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		ExpirationSeconds: new(int64(max(of.Life(), leastTokenLife) / time.Second)),
	}}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: of.Namespace, Name: of.Account}}
	if err := member.GetClient().SubResource("token").Create(ctx, account, request); err != nil {
		return of, fmt.Errorf("request a token of serviceaccount/%s/%s: %w", of.Namespace, of.Account, err)
	}
	if secret.Data[clusters.KubeconfigKey], err = kubeconfig.WithToken(secret.Data[clusters.KubeconfigKey], request.Status.Token); err != nil {
		return of, err
	}
	fresh, ok := kubeconfig.TokenOf(secret.Data[clusters.KubeconfigKey])
	if !ok || fresh.Namespace != of.Namespace || fresh.Account != of.Account || !fresh.Expires.After(of.Expires) {
		return of, errors.New("the member returned a token for another account, or one that does not expire later")
	}
	if err := k.mayWrite(status.Name); err != nil {
		return of, err
	}
	if _, err := secrets.Update(ctx, secret, metav1.UpdateOptions{FieldManager: "plimsoll-hub"}); err != nil { // of the version that was read
		if apierrors.IsForbidden(err) {
			return of, errors.New("the hub may not update the registration Secret")
		}
		return of, fmt.Errorf("write the registration: %w", err)
	}
	return fresh, nil
}

// renewed notes the result of a renewal.
func (k *tokenKeeper) renewed(member string, token kubeconfig.Token, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	known := k.tokens[member]
	if known == nil {
		return
	}
	if err != nil {
		problem := plain.Text(err.Error(), maxTokenProblem)
		if known.problem != problem {
			k.log.Warn("cannot renew the member's token; keeping the current one", "member", member, "expires", token.Expires, "error", err)
		}
		known.problem, known.next = problem, time.Now().Add(tokenRetry)
		return
	}
	known.problem, known.written, known.token = "", token.Expires, token // the watch shows it in a moment
	known.next = time.Now().Add(tokenRetry)                              // a member may issue tokens that are due at once
	k.log.Info("the member's token was renewed", "member", member, "expires", token.Expires)
}

// conditionToken reports whether a member's token is about to expire.
const conditionToken = "TokenExpiring"

// unrenewable reports whether what the hub cannot renew expires before the token of a service account, if there is one.
func (t *memberToken) unrenewable() bool {
	return t.what != "" && (!t.known || t.token.Life() <= 0 || t.other.Expires.Before(t.token.Expires))
}

// troubled reports whether the token of a service account is not renewed as it should be: somebody has to do something about that sooner.
func (t *memberToken) troubled() bool {
	return t.known && t.token.Life() > 0 && (t.problem != "" || t.putBack)
}

// condition shows what expires first of a member's credentials, or what is wrong with the renewal of its token; false: there is nothing to be
// shown, as with a static token.
func (k *tokenKeeper) condition(member string, now time.Time) (metav1.Condition, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	known := k.tokens[member]
	switch {
	case known == nil || known.what == "" && !known.known:
		return metav1.Condition{}, false
	case known.unrenewable() && !known.troubled():
		return known.conditionOfOther(now), true
	}
	is := metav1.Condition{Type: conditionToken, Status: metav1.ConditionFalse, Reason: "Valid",
		Message: "the token expires at " + known.token.Expires.UTC().Format(time.RFC3339) + "; the hub renews it before"}
	at := "the token expires at " + known.token.Expires.UTC().Format(time.RFC3339)
	switch {
	case known.token.Life() <= 0:
		is.Reason, is.Message = "NeverExpires", "the token does not expire: `plimsoll register` replaces it with one that does"
		return is, true
	case known.external:
		is.Reason, is.Message = "RenewedElsewhere", at+"; according to the registration, something else renews it"
	case known.problem != "":
		is.Reason, is.Message = "RenewalFailed", at+", and was not renewed: "+known.problem
	case known.putBack:
		is.Reason, is.Message = "PutBack", at+", and something overwrote the renewed token with an older one: set the annotation "+
			kubeconfig.TokenRenewalAnnotation+": "+kubeconfig.RenewedElsewhere+", and renew it there"
	case k.renewAt == 0:
		is.Reason, is.Message = "NotRenewed", at+"; the hub renews no tokens (clusters.tokenRenewalPercent)"
	}
	unattended := !known.external && (known.problem != "" || known.putBack)
	if unattended || known.token.Spent(now) >= config.TokenAlarm {
		is.Status = metav1.ConditionTrue
	}
	return is, true
}

// conditionOfOther shows a credential that the hub cannot renew.
func (t *memberToken) conditionOfOther(now time.Time) metav1.Condition {
	at := "the " + t.what + " expires at " + t.other.Expires.UTC().Format(time.RFC3339)
	is := metav1.Condition{Type: conditionToken, Status: metav1.ConditionFalse, Reason: "NotRenewable", Message: at + "; the hub renews tokens of service accounts only"}
	if t.external {
		is.Reason, is.Message = "RenewedElsewhere", at+"; according to the registration, something else renews it"
	}
	if t.other.Spent(now) >= config.TokenAlarm {
		is.Status = metav1.ConditionTrue
	}
	return is
}
