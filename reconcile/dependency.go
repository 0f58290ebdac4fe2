package reconcile

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plimsoll-dev/plimsoll/reconcile/internal/depend"
)

// ReasonDependencyNotReady is the reason of conditions of objects that wait for what they depend on.
const ReasonDependencyNotReady = "DependencyNotReady"

// A Dependency is something that an object needs before it can be brought to its spec. It is made with [OnSecret],
// [OnConfigMap], [OnCondition] or [OnEndpoint], and given to [Builder.DependsOn] or [Request.Require]. Two that are made of
// the same arguments are equal. Its method In gives the same dependency in another member.
type Dependency = depend.Dependency

// Unmet says what an object waits for: in words with its method String, and one by one with Dependencies.
type Unmet = depend.Unmet

// OnSecret needs a Secret to exist and, if keys are given, to have all of them in its data. An empty namespace is that of
// the object that depends on it. Values are never kept: of a Secret only its name and version are watched, and the names of its
// keys are read when they are asked for.
//
// It shows whoever may write the depending object whether such a Secret exists, so a reconciler that takes the namespace
// from users should insist on their own.
func OnSecret(name types.NamespacedName, keys ...string) Dependency {
	return depend.OnSecret(name, keys...)
}

// OnConfigMap needs a ConfigMap to exist and, if keys are given, to have all of them in its data or binaryData. An empty
// namespace is that of the object that depends on it.
func OnConfigMap(name types.NamespacedName, keys ...string) Dependency {
	return depend.OnConfigMap(name, keys...)
}

// OnCondition needs an object to have the condition in the status, for example "Ready" and metav1.ConditionTrue. The
// version of gvk must be one that the member serves. A condition that says it is about an older generation of its object
// does not count.
func OnCondition(gvk schema.GroupVersionKind, name types.NamespacedName, condition string, status metav1.ConditionStatus) Dependency {
	return depend.OnCondition(gvk, name, condition, status)
}

// OnEndpoint needs an HTTPS endpoint outside the fleet to answer a GET with one of the statuses; none: with 2xx. It is
// asked by the hub, at most once in 30 s for all objects that depend on it, without credentials, over verified TLS, and
// only where [Options.ExternalNetworks] allows it. Redirects to other hosts do not count as answers.
func OnEndpoint(url string, statuses ...int) Dependency {
	return depend.OnEndpoint(url, statuses...)
}

// WaitFor is the result of a reconcile whose object waits for dependencies: it is looked at again after 5 s, or 30 s if all
// of them are outside the fleet, and at once when one that is in the fleet changes. Its conditions say what it waits for, with
// [ReasonDependencyNotReady]. With nil it is Done.
func WaitFor(unmet *Unmet) Result {
	after, waits := depend.RetryAfter(unmet)
	if !waits {
		return Done()
	}
	r := RequeueAfter(after, unmet.String())
	r.unmet = unmet
	return r
}

// DependsOn declares what each object needs before it is reconciled. The function is called with the object of every
// reconcile and names what it depends on; it must not change the object, and should do nothing but read it. While
// something is missing the reconciler is not called: the object waits as with [WaitFor], and its conditions say for what. An
// object that is being deleted waits for nothing, so that it can go.
//
// A dependency is watched where it is, also in another member ([Dependency.In]), so its change wakes whoever waits for it at
// once. Objects that wait for each other in a circle are reported as such. A reconciler that can do a part of its work without its
// dependencies, or that wants to continue when one that it had is gone, asks with [Request.Require] instead.
func (b *Builder[T]) DependsOn(of func(obj T) []Dependency) *Builder[T] {
	if of == nil {
		b.fail("DependsOn: the function is nil")
	}
	b.dependsOn = of
	return b
}

// Require checks dependencies in the middle of a reconcile. Nil says that all are met; else the reconciler should return
// WaitFor with what it got, after whatever it can do without them:
//
//	if unmet := req.Require(ctx, reconcile.OnSecret(name, "password")); unmet != nil {
//		return reconcile.WaitFor(unmet), nil
//	}
//
// The object wakes when one of them changes, as with [Builder.DependsOn], until a later reconcile of it ends without an
// error and has not required it. What is in the fleet is answered from memory once its watch has begun, at first with one
// read of the member's API server; an endpoint's answer is waited for only briefly. Failing to look is not an error: the
// dependency is not met, for that reason. It may be called concurrently for different requests only.
func (r Request[T]) Require(ctx context.Context, all ...Dependency) *Unmet {
	if r.needs == nil {
		return depend.RequireLive(ctx, r.Live, r.Object, all)
	}
	return r.needs.Require(ctx, all)
}

// reconcile calls the reconciler, unless its object waits for what the controller declares.
func (a *adapter[T]) reconcile(ctx context.Context, req Request[T]) (result Result, err error) {
	if unmet := a.waits(ctx, req); unmet != nil {
		result = WaitFor(unmet)
	} else {
		result, err = a.reconciler.Reconcile(ctx, req)
	}
	if unmet := result.unmet; err == nil && unmet != nil && !req.Conditions.said(ConditionReady) {
		req.Conditions.False(ConditionReady, ReasonDependencyNotReady, "%s", unmet)
	}
	req.needs.Settle(err == nil)
	return result, err
}

func (a *adapter[T]) waits(ctx context.Context, req Request[T]) *Unmet {
	if a.dependsOn == nil || req.Object.GetDeletionTimestamp() != nil {
		return nil
	}
	return req.Require(ctx, a.dependsOn(req.Object)...)
}

// said reports whether the reconciler has set or removed a condition.
func (c *Conditions) said(condition string) bool { return c != nil && c.touched[condition] }

// Watched is how many watches are held in a member for what objects depend on.
func (rt *Runtime) Watched(member string) (n int) { return rt.dependencies.Watched(member) }
