package webapp

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/plimsoll-dev/plimsoll/reconcile"
	v1 "github.com/plimsoll-dev/plimsoll/reconcile/webapp/v1"
)

// Progress says where in its life a WebApp is whose objects have all been made.
type Progress struct {
	// Reason is that of Ready: v1.ReasonReady, v1.ReasonWaitingForPods, v1.ReasonScaling, v1.ReasonPodsRefused or v1.ReasonStuck.
	Reason string
	// Message says the same to people, with numbers.
	Message string
}

// Ready reports whether there is nothing left to wait for.
func (p Progress) Ready() bool { return p.Reason == v1.ReasonReady }

// Stalled reports whether nothing happens before a person does something.
func (p Progress) Stalled() bool {
	return p.Reason == v1.ReasonPodsRefused || p.Reason == v1.ReasonStuck
}

// Assess compares what the Deployment says of itself with what is asked of it. before is the WebApp's status as it was when
// it was last written: a number of pods that differs from what is wanted now means scaling rather than a start, and goes on
// meaning that until all are there.
func Assess(deployment *appsv1.Deployment, before *v1.WebAppStatus) Progress {
	want, is := replicasOf(deployment), &deployment.Status
	if stalled, ok := stalled(deployment); ok {
		return stalled
	}
	switch {
	case is.ObservedGeneration < deployment.Generation && is.ObservedGeneration > 0: // a new one has no pods, and says so
		return Progress{next(before, want), "waiting for the Deployment's controller"}
	case is.Replicas > is.UpdatedReplicas && is.UpdatedReplicas < want:
		return Progress{v1.ReasonWaitingForPods, fmt.Sprintf("%d of %d pods are of the new revision", is.UpdatedReplicas, want)}
	case is.Replicas > want:
		return Progress{next(before, want), fmt.Sprintf("%d surplus pods, %d wanted", is.Replicas-want, want)}
	case is.UpdatedReplicas < want:
		return Progress{next(before, want), fmt.Sprintf("%d of %d pods are created", is.UpdatedReplicas, want)}
	case is.AvailableReplicas < want:
		return Progress{next(before, want), fmt.Sprintf("%d of %d pods are available", is.AvailableReplicas, want)}
	}
	return Progress{v1.ReasonReady, fmt.Sprintf("%d of %d pods are available", is.AvailableReplicas, want)}
}

// stalled finds what the Deployment's controller has given up on.
func stalled(deployment *appsv1.Deployment) (Progress, bool) {
	if deployment.Status.ObservedGeneration < deployment.Generation {
		return Progress{}, false // about an older spec
	}
	for _, c := range deployment.Status.Conditions {
		switch {
		case c.Type == appsv1.DeploymentReplicaFailure && c.Status == corev1.ConditionTrue:
			return Progress{v1.ReasonPodsRefused, c.Message}, true
		case c.Type == appsv1.DeploymentProgressing && c.Status == corev1.ConditionFalse:
			return Progress{v1.ReasonStuck, c.Message}, true
		}
	}
	return Progress{}, false
}

// next reports whether pods that are not as wanted are a matter of scaling.
func next(before *v1.WebAppStatus, want int32) string {
	for _, c := range before.Conditions {
		if c.Type != reconcile.ConditionReady {
			continue
		}
		if c.Reason == v1.ReasonScaling || (c.Reason == v1.ReasonReady && before.Replicas != want) {
			return v1.ReasonScaling
		}
	}
	return v1.ReasonWaitingForPods
}

func replicasOf(deployment *appsv1.Deployment) int32 {
	if deployment.Spec.Replicas == nil {
		return 1
	}
	return *deployment.Spec.Replicas
}
