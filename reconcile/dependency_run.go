package reconcile

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// DependsOn declares what each object needs before it is reconciled. The function is called with the object of every
// reconcile and names what it depends on; it must not change the object, and should do nothing but read it. While
// something is missing the reconciler is not called: the object waits as with [WaitFor], and its conditions say for what. An
// object that is being deleted waits for nothing, so that it can go.
//
// A dependency is watched where it is, also in another member ([Dependency.In]), so its change wakes whoever waits for it at
// once. Objects that wait for each other in a circle are told so. A reconciler that can do a part of its work without its
// dependencies, or that wants to go on when one that it had is gone, asks with [Request.Require] instead.
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
		return requireLive(ctx, r.Live, r.Object, all)
	}
	return r.needs.flow.queue.rt.dependencies.require(ctx, r.needs, all)
}

// requireLive is Require for requests that no controller made.
func requireLive(ctx context.Context, live client.Reader, obj client.Object, all []Dependency) *Unmet {
	var u Unmet
	for _, d := range all {
		d = d.of("", obj.GetNamespace())
		why := d.invalid()
		if why == "" && (d.external() || d.member != "") {
			why = "a request that no controller made cannot look there"
		}
		if why == "" {
			f := observe(ctx, live, d)
			why = f.why(d)
		}
		if why != "" {
			u.missing = append(u.missing, missing{dependency: d, why: why})
		}
	}
	if len(u.missing) == 0 {
		return nil
	}
	return &u
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
	a.controller.rt.dependencies.settle(req.needs, err == nil)
	return result, err
}

func (a *adapter[T]) waits(ctx context.Context, req Request[T]) *Unmet {
	if a.dependsOn == nil || req.Object.GetDeletionTimestamp() != nil {
		return nil
	}
	return req.Require(ctx, a.dependsOn(req.Object)...)
}

// said tells whether the reconciler has set or removed a condition.
func (c *Conditions) said(condition string) bool { return c != nil && c.touched[condition] }
