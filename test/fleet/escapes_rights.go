package fleet

import (
	"context"

	authenticationv1 "k8s.io/api/authentication/v1"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/plimsoll-dev/plimsoll/clusters"
)

// rightsEscapes reach for rights, policies and objects of others.
func rightsEscapes() []Escape {
	const policy = "plimsoll-hub-pods"
	return append(append(secretEscapes(), leaseEscapes()...), []Escape{
		{Name: "delete the policy that binds it", ByRBAC: true, try: func(ctx context.Context, p *prisoner) error {
			return p.AdmissionregistrationV1().ValidatingAdmissionPolicies().Delete(ctx, policy, metav1.DeleteOptions{DryRun: dry})
		}},
		{Name: "have its policy warn in place of deny", ByRBAC: true, try: func(ctx context.Context, p *prisoner) error {
			kind, data, options := patch(`{"spec":{"validationActions":["Warn"]}}`)
			_, err := p.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings().Patch(ctx, policy, kind, data, options)
			return err
		}},
		{Name: "give itself cluster-admin", try: func(ctx context.Context, p *prisoner) error {
			_, err := p.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
				ObjectMeta: metav1.ObjectMeta{Name: "escaped"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
				Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: Namespace, Name: account}},
			}, metav1.CreateOptions{DryRun: dry})
			return err
		}},
		{Name: "widen its own role", try: func(ctx context.Context, p *prisoner) error {
			kind, data, options := patch(`{"rules":[{"apiGroups":["*"],"resources":["*"],"verbs":["*"]}]}`)
			_, err := p.RbacV1().ClusterRoles().Patch(ctx, account, kind, data, options)
			return err
		}},
		{Name: "act as an administrator", ByRBAC: true, try: func(ctx context.Context, p *prisoner) error {
			config := rest.CopyConfig(p.config)
			config.Impersonate = rest.ImpersonationConfig{UserName: "admin", Groups: []string{"system:masters"}}
			clients, err := kubernetes.NewForConfig(config)
			if err != nil {
				return err
			}
			_, err = clients.CoreV1().Secrets(metav1.NamespaceSystem).List(ctx, metav1.ListOptions{Limit: 1})
			return err
		}},
		{Name: "weaken Pod Security of its namespace", try: func(ctx context.Context, p *prisoner) error {
			kind, data, options := patch(`{"metadata":{"labels":{"pod-security.kubernetes.io/enforce":"privileged"}}}`)
			_, err := p.CoreV1().Namespaces().Patch(ctx, Namespace, kind, data, options)
			return err
		}},
		{Name: "run a Job as another account", try: func(ctx context.Context, p *prisoner) error {
			pod := pausePod("", "").Spec
			pod.RestartPolicy, pod.ServiceAccountName = corev1.RestartPolicyNever, foreignAccount
			_, err := p.BatchV1().Jobs(escapeTargets).Create(ctx, &batchv1.Job{
				ObjectMeta: metav1.ObjectMeta{Name: "escaped"}, Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: pod}},
			}, metav1.CreateOptions{DryRun: dry})
			return err
		}},
		{Name: "take the taint from a node", try: func(ctx context.Context, p *prisoner) error {
			kind, data, options := patch(`{"spec":{"taints":null,"unschedulable":false}}`)
			_, err := p.CoreV1().Nodes().Patch(ctx, escapeTargets, kind, data, options)
			return err
		}},
	}...)
}

// secretEscapes reach for tokens and Secrets of others.
func secretEscapes() []Escape {
	return []Escape{
		{Name: "get the token of another account", try: func(ctx context.Context, p *prisoner) error {
			_, err := p.CoreV1().ServiceAccounts(escapeTargets).CreateToken(ctx, foreignAccount, &authenticationv1.TokenRequest{}, metav1.CreateOptions{DryRun: dry})
			return err
		}},
		{Name: "get a token of its own that lives for ten years", try: func(ctx context.Context, p *prisoner) error {
			long := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: new(int64(10 * 365 * 24 * 3600))}}
			_, err := p.CoreV1().ServiceAccounts(Namespace).CreateToken(ctx, account, long, metav1.CreateOptions{DryRun: dry})
			return err
		}},
		{Name: "get the token of another account by a Secret", try: func(ctx context.Context, p *prisoner) error {
			_, err := p.CoreV1().Secrets(Namespace).Create(ctx, &corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{Name: "escaped", Annotations: map[string]string{corev1.ServiceAccountNameKey: "default"}},
				Type:       corev1.SecretTypeServiceAccountToken,
			}, metav1.CreateOptions{DryRun: dry})
			return err
		}},
		{Name: "read a Secret that no WebApp names", ByRBAC: true, try: func(ctx context.Context, p *prisoner) error {
			_, err := p.CoreV1().Secrets(escapeTargets).Get(ctx, secretName, metav1.GetOptions{})
			return err
		}},
	}
}

// leaseEscapes write Leases and Events that are not the hub's.
func leaseEscapes() []Escape {
	return []Escape{
		{Name: "hold a Lease in the hub's namespace", try: changingIdentity(`{"spec":{"holderIdentity":"escaped"}}`)},
		{Name: "keep the Lease of its identity from going", try: changingIdentity(`{"metadata":{"finalizers":["example.com/escaped"]}}`)},
		{Name: "keep other things in the Lease of its identity", try: changingIdentity(`{"metadata":{"annotations":{"example.com/escaped":"x"}}}`)},
		{Name: "hold the Lease of a node", try: func(ctx context.Context, p *prisoner) error {
			_, err := p.CoordinationV1().Leases(corev1.NamespaceNodeLease).Create(ctx, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "escaped"}},
				metav1.CreateOptions{DryRun: dry})
			return err
		}},
		{Name: "write an Event in the name of another component", try: creatingEvent(func(e *corev1.Event) {
			e.Source.Component, e.ReportingController = "kubelet", "kubelet"
		})},
		{Name: "write an Event that another controller reports", try: creatingEvent(func(e *corev1.Event) { e.ReportingController = "kubelet" })},
		{Name: "write an Event of nobody", try: creatingEvent(func(e *corev1.Event) { e.Source.Component, e.ReportingController = "", "" })},
		{Name: "give an Event of its own to another component", try: changingEvent(`{"source":{"component":"kubelet"},"reason":"Evicted"}`)},
		{Name: "have another controller report an Event of its own", try: changingEvent(`{"reportingComponent":"kubelet"}`)},
		{Name: "write an Event by the other group of Events", try: func(ctx context.Context, p *prisoner) error {
			_, err := p.EventsV1().Events(escapeTargets).Create(ctx, &eventsv1.Event{
				ObjectMeta: metav1.ObjectMeta{Name: "escaped"}, EventTime: metav1.NowMicro(), Type: corev1.EventTypeNormal, Reason: "Escaped", Action: "Escaped",
				ReportingController: "example.com/plimsoll", ReportingInstance: "plimsoll",
				Regarding: corev1.ObjectReference{Kind: "Pod", Namespace: escapeTargets, Name: foreignPod},
			}, metav1.CreateOptions{DryRun: dry})
			return err
		}},
	}
}

// eventOf is an Event of a component.
func eventOf(component, name string) *corev1.Event {
	return &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: escapeTargets, Name: name}, Type: corev1.EventTypeNormal, Reason: "Escaped", Count: 1,
		Source: corev1.EventSource{Component: component}, ReportingController: component,
		InvolvedObject: corev1.ObjectReference{Kind: "Pod", Namespace: escapeTargets, Name: foreignPod},
	}
}

// creatingEvent creates an Event as the hub does, with a change.
func creatingEvent(change func(*corev1.Event)) func(context.Context, *prisoner) error {
	return func(ctx context.Context, p *prisoner) error {
		e := eventOf("plimsoll/escapes", "another")
		change(e)
		_, err := p.CoreV1().Events(escapeTargets).Create(ctx, e, metav1.CreateOptions{DryRun: dry})
		return err
	}
}

// changingEvent changes an Event of the hub.
func changingEvent(merge string) func(context.Context, *prisoner) error {
	return func(ctx context.Context, p *prisoner) error {
		kind, data, options := patch(merge)
		_, err := p.CoreV1().Events(escapeTargets).Patch(ctx, hubEvent, kind, data, options)
		return err
	}
}

// changingIdentity changes more of the Lease than its nonce.
func changingIdentity(merge string) func(context.Context, *prisoner) error {
	return func(ctx context.Context, p *prisoner) error {
		_, err := p.CoordinationV1().Leases(Namespace).Patch(ctx, clusters.IdentityLease, types.MergePatchType, []byte(merge), metav1.PatchOptions{DryRun: dry})
		return err
	}
}
