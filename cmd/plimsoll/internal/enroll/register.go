package enroll

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/plimsoll-dev/plimsoll/clusters"
	"github.com/plimsoll-dev/plimsoll/clusters/kubeconfig"
)

// Registration says what to register.
type Registration struct {
	// Name of the member, a DNS label.
	Name string
	// Namespace is that of registrations in the hub cluster; MemberNamespace that of the hub's account in the member.
	Namespace, MemberNamespace string
	// Namespaces of the member that it is registered for; empty: the whole cluster.
	Namespaces []string
	// InCluster: the member is the hub's own cluster, so that the account must not be the hub's own; [Register] and [Unregister] find it out.
	InCluster bool
	// HubNamespace is that of the hub itself, which matters in its own cluster; "": [DefaultNamespace].
	HubNamespace string
	// Fleet lets the hub set how many replicas workloads have, for FleetPlacements.
	Fleet bool
	// WorkloadResources are further resources that the hub may read, as rollouts.argoproj.io.
	WorkloadResources []string
	// Writes are resources that the hub may write for reconcilers that others added to it, as configmaps or certificates.cert-manager.io.
	Writes []string
	// Keeps are custom kinds, by the names of their definitions, that modules which others added to the hub keep in members.
	Keeps []string
	// Kinds are those of this repository's modules: the policies let the hub write what their objects consist of, and [Unregister]
	// reports what it leaves of them in the member.
	Kinds []Kind
	// Server overrides the URL at which the hub finds the member; CA, in PEM, whom it trusts there.
	Server string
	CA     []byte
	// AnnotationPrefixes are those of the hub's labels and annotations in the member; empty: plimsoll.dev.
	AnnotationPrefixes []string
	// WebhookURL is where the member reaches the hub's webhooks; "": the hub may choose the host once.
	WebhookURL string
	// secretType is that of a registration Secret that is there, which cannot be changed; "": there is none.
	secretType corev1.SecretType
	// TokenDuration asks for a token that expires after it, which the hub renews; 0: one that does not expire.
	TokenDuration time.Duration
}

// Validate says what cannot be.
func (r Registration) Validate() error {
	if err := validLabel("name", r.Name); err != nil {
		return err
	}
	for _, namespace := range []string{r.Namespace, r.MemberNamespace, cmp.Or(r.HubNamespace, DefaultNamespace)} {
		if err := validLabel("namespace", namespace); err != nil {
			return err
		}
	}
	if err := r.validateNamespaces(); err != nil {
		return err
	}
	for _, resource := range r.WorkloadResources {
		plural, group, _ := strings.Cut(resource, ".")
		if len(validation.IsDNS1035Label(plural)) > 0 || len(validation.IsDNS1123Subdomain(group)) > 0 {
			return fmt.Errorf("workload resource %q: must be a plural and a group, as in rollouts.argoproj.io", resource)
		}
	}
	if err := errors.Join(r.validateWrites(), r.validateKeeps(), r.validatePolicies()); err != nil {
		return err
	}
	if r.TokenDuration != 0 && r.TokenDuration < 10*time.Minute {
		return fmt.Errorf("token duration %s: must be at least 10m", r.TokenDuration)
	}
	return nil
}

func validLabel(what, value string) error {
	if problems := validation.IsDNS1123Label(value); len(problems) > 0 {
		return fmt.Errorf("%s %q: %s", what, value, problems[0])
	}
	return nil
}

// Outcome is what a person should know after registering.
type Outcome struct {
	// Expires is when the token does; zero: never.
	Expires time.Time
	// Loopback: the server is one that only this machine reaches.
	Loopback bool
	// Version is the resourceVersion of the registration Secret.
	Version string
	// Warnings are about what others created in the member: tokens that do not expire, and policies that are not as was asked for.
	Warnings []string
}

// Register makes a cluster a member. It checks everything that can be before it changes anything, and reports each object.
// The token is proven in the member before the hub gets it.
func Register(ctx context.Context, r Registration, member, hub *Context, report func(Change)) (Outcome, error) {
	if err := r.Validate(); err != nil {
		return Outcome{}, err
	}
	at, err := targetOf(member, r.Server, r.CA)
	if err != nil {
		return Outcome{}, err
	}
	e := enrolment{Registration: r, report: report}
	if e.member, err = Connect(SideMember, member); err != nil {
		return Outcome{}, err
	}
	if e.hub, err = Connect(SideHub, hub); err != nil {
		return Outcome{}, err
	}
	uid, err := e.identify(ctx)
	if err != nil {
		return Outcome{}, err
	}
	if e.InCluster, err = e.ownCluster(ctx, uid); err != nil {
		return Outcome{}, err
	}
	differ, err := e.prepare(ctx, uid)
	if err != nil {
		return Outcome{}, err
	}
	token, expires, err := e.proven(ctx)
	if err != nil {
		return Outcome{}, err
	}
	kubeconfig, err := at.kubeconfig(r.Name, token)
	if err != nil {
		return Outcome{}, err
	}
	version, err := e.handOver(ctx, uid, kubeconfig)
	if err != nil {
		return Outcome{}, err
	}
	warnings, err := e.revoke(ctx)
	if err == nil {
		var more []string
		more, err = e.leave(ctx)
		warnings = append(warnings, more...)
	}
	if len(differ) > 0 {
		warnings = append(warnings, "plimsoll did not create "+strings.Join(differ, ", ")+", which differ from those of this version with these flags: "+
			"bring them up to date where they come from, or delete them and register again")
	}
	return Outcome{Expires: expires, Loopback: r.Server == "" && at.loopback(), Version: version, Warnings: warnings}, err
}

// prepare brings what the hub needs into the member of that UID, and returns what somebody else made of it and differs.
func (e *enrolment) prepare(ctx context.Context, uid string) (differ []string, err error) {
	objects, err := memberObjects(e.Registration, e.TokenDuration == 0)
	if err != nil {
		return nil, err
	}
	if err := e.preflight(ctx, objects, uid); err != nil {
		return nil, err
	}
	for _, o := range objects {
		change, err := e.member.apply(ctx, o)
		if err := e.applied(change, err); err != nil {
			return nil, err
		}
		if change.Note == outdated {
			differ = append(differ, change.Object)
		}
	}
	return differ, e.retire(ctx)
}

// proven returns a token that the member takes: the one that the hub has, if it is as was asked for and young, else another.
func (e *enrolment) proven(ctx context.Context) (string, time.Time, error) {
	if token, expires, ok := e.present(ctx); ok && e.prove(ctx, token) == nil {
		return token, expires, nil
	}
	token, expires, err := e.token(ctx)
	if err == nil {
		err = e.prove(ctx, token)
	}
	return token, expires, err
}

// enrolment is one registration under way.
type enrolment struct {
	Registration
	member, hub *Cluster
	report      func(Change)
	// had is the token in the registration before; zero: there was none of a service account.
	had kubeconfig.Token
}

func (e *enrolment) applied(change Change, err error) error {
	if err == nil {
		e.report(change)
	}
	return err
}

// handOver creates or updates the registration Secret, and returns its resourceVersion.
func (e *enrolment) handOver(ctx context.Context, uid string, kubeconfig []byte) (version string, err error) {
	objects, err := collect(namespaceObject(e.Namespace, e.namespaceLabels()), func() (object, error) { return registration(e.Registration, uid, kubeconfig) })
	if err != nil {
		return "", err
	}
	for _, o := range objects {
		change, err := e.hub.apply(ctx, o)
		if o.resource.Resource == "secrets" && e.secretType != "" && e.secretType != clusters.KubeconfigType {
			change.Note = "its type is " + string(e.secretType) + ", which the hub uses only in its own namespace: delete it and register again"
		}
		if err := e.applied(change, err); err != nil {
			return "", err
		}
		version = change.Version // the Secret is the last
	}
	return version, nil
}

// tokenPatience is how long the token controller may take to fill a Secret, and a new binding to be known everywhere.
const tokenPatience = 30 * time.Second

// token returns a token of the hub's account.
func (e *enrolment) token(ctx context.Context) (string, time.Time, error) {
	own := e.names()
	if e.TokenDuration > 0 {
		return requestToken(ctx, e.member, e.MemberNamespace, own.account, e.TokenDuration)
	}
	var token []byte
	err := wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, tokenPatience, true, func(ctx context.Context) (bool, error) {
		secret, err := e.member.typed.CoreV1().Secrets(e.MemberNamespace).Get(ctx, own.token, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		token = secret.Data["token"]
		return len(token) > 0, nil
	})
	if wait.Interrupted(err) && ctx.Err() == nil {
		err = fmt.Errorf("it has no token after %s: the member's token controller (part of kube-controller-manager) must run, "+
			"or ask for a token that expires with --token-duration", tokenPatience)
	}
	if err != nil {
		return "", time.Time{}, e.member.failed("read the token in secret/"+e.MemberNamespace+"/"+own.token, err)
	}
	return string(token), time.Time{}, nil
}

// prove checks that the member takes the token and grants what the role says. It goes the way that the person's own requests go: the
// hub's may not be open from here.
func (e *enrolment) prove(ctx context.Context, token string) error {
	config := rest.AnonymousClientConfig(e.member.config)
	config.BearerToken = token
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		return e.member.failed("test the token", err)
	}
	// A role and a binding that came last are known last.
	watched := append([]string{metav1.NamespaceAll}, e.Namespaces...)
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: watched[len(watched)-1], Resource: "pods", Verb: "watch", Version: "v1"},
	}}
	err = wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, tokenPatience, true, func(ctx context.Context) (bool, error) {
		answer, err := clients.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
		if apierrors.IsUnauthorized(err) {
			return false, nil // a token may be known to one API server before it is to another
		}
		return err == nil && answer.Status.Allowed, err
	})
	if wait.Interrupted(err) && ctx.Err() == nil {
		err = errors.New("the member does not accept it, or grants it no rights: check whether clusterrolebinding/" + e.names().role + " was created by another tool")
	}
	if err != nil {
		return e.member.failed("test the token of the hub's account", err)
	}
	return nil
}
