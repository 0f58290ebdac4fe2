// Package webapp makes a WebApp into what runs it: a Deployment, a Service, a ServiceAccount, and a HorizontalPodAutoscaler
// and a PodDisruptionBudget where they are asked for. It is also the example from which to learn how a reconciler is
// written; docs/write-a-reconciler.md goes through it.
//
// It never takes over an object that it has not made, never writes what is as it should be, and decides nothing about
// nodes: spec.spot becomes the annotations that package spot reads.
//
// Where to look, in the order in which a WebApp meets it:
//
//	v1, v1beta1, v1alpha1   the kind by version; convert.go between them; crd what members are to know of it
//	admit.go                what is refused or completed before it is stored
//	module.go               how a hub takes the kind in
//	reconciler.go           one reconcile, from reading to status; register.go: what it watches, and may do
//	desired.go              which objects a WebApp consists of; pods.go: the pods in its Deployment
//	progress.go             where in its life a WebApp is; placement.go: where its replicas are
package webapp
