package spot

import (
	"context"
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/reconcile"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/internal/spottest"
)

// minReady is a workload with minReadySeconds, as its member's cache has it: the ReplicaSet beside it, if there is one, who owns its pods,
// and how it is reconciled.
type minReady struct {
	workload  client.Object
	set       *appsv1.ReplicaSet
	owner     metav1.OwnerReference
	reconcile func(r *releases) error
}

func requestFor[T client.Object](r *releases, obj T) reconcile.Request[T] {
	return reconcile.Request[T]{Member: testMember, Object: obj, Client: r.client, Live: r.client, Events: noEvents{}}
}

// minReadyOf makes a workload of each kind that has three replicas, all of which belong on-demand.
func minReadyOf(t *testing.T, seconds int32) map[string]minReady {
	labels, keys, annotations := spottest.MustLabels(t), spottest.DefaultKeys, spottest.Annotations("spot-percentage", "0")
	selector := &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	owner := func(obj client.Object, apiVersion, kind string) metav1.OwnerReference {
		return metav1.OwnerReference{APIVersion: apiVersion, Kind: kind, Name: obj.GetName(), UID: obj.GetUID(), Controller: new(true)}
	}
	d, cachedD := deployment(3, "true", annotations), deployment(3, "true", annotations)
	d.Spec.MinReadySeconds = seconds
	DeploymentKind(keys).Keep(d, cachedD)

	set := &appsv1.StatefulSet{ObjectMeta: *deployment(3, "true", annotations).ObjectMeta.DeepCopy(),
		Spec: appsv1.StatefulSetSpec{Replicas: new(int32(3)), Selector: selector, MinReadySeconds: seconds}, Status: appsv1.StatefulSetStatus{Replicas: 3}}
	cachedSet := &appsv1.StatefulSet{ObjectMeta: *set.ObjectMeta.DeepCopy()}
	StatefulSetKind(keys, labels).Keep(set, cachedSet)

	bare := ofController("", "", 3)
	bare.Labels, bare.Annotations, bare.Spec.Selector, bare.Status.Replicas, bare.Spec.MinReadySeconds = labelled("true"), annotations, selector, 3, seconds
	cachedBare := &appsv1.ReplicaSet{ObjectMeta: *bare.ObjectMeta.DeepCopy()}
	replicaSetKind(keys, labels).Keep(bare, cachedBare)

	kind := workloadKind(t, "apps.kruise.io/v1alpha1", "CloneSet")
	clones := configuredObject("apps.kruise.io/v1alpha1", "CloneSet", 3, annotations)
	if err := unstructured.SetNestedField(clones.Object, int64(seconds), "spec", "minReadySeconds"); err != nil {
		t.Fatal(err)
	}
	cachedClones := kind.object()
	cachedClones.SetNamespace("shop")
	cachedClones.SetName("web")
	cachedClones.SetUID(clones.GetUID())
	kind.cached(keys, labels).Keep(clones, cachedClones)

	reconciled := func(_ reconcile.Result, err error) error { return err }
	ctx := context.Background()
	return map[string]minReady{
		"Deployment": {cachedD, counted(3), owner(counted(3), "apps/v1", kindReplicaSet), func(r *releases) error {
			return reconciled(deploymentReconciler{r.Engine}.Reconcile(ctx, requestFor(r, cachedD)))
		}},
		"StatefulSet": {cachedSet, nil, owner(cachedSet, "apps/v1", KindStatefulSet), func(r *releases) error {
			return reconciled(statefulSetReconciler{r.Engine}.Reconcile(ctx, requestFor(r, cachedSet)))
		}},
		"ReplicaSet": {cachedBare, nil, owner(cachedBare, "apps/v1", kindReplicaSet), func(r *releases) error {
			return reconciled(replicaSetReconciler{r.Engine}.Reconcile(ctx, requestFor(r, cachedBare)))
		}},
		"CloneSet": {cachedClones, nil, owner(cachedClones, "apps.kruise.io/v1alpha1", "CloneSet"), func(r *releases) error {
			return reconciled(configuredReconciler{r.Engine, kind}.Reconcile(ctx, requestFor(r, cachedClones)))
		}},
	}
}

// One replica was moved and has been ready for an hour. The next one goes only once it has been ready for as long as its workload asks
// for, whatever kind that is.
func TestTheNextReplicaMovesOnceTheLastOneHasBeenReadyForMinReadySeconds(t *testing.T) {
	for seconds, moves := range map[int32]int{7200: 0, 60: 1} {
		for name, c := range minReadyOf(t, seconds) {
			objects := []client.Object{namespace("true", nil)}
			if c.set != nil {
				objects = append(objects, c.set)
			}
			if _, known := c.workload.(*unstructured.Unstructured); !known {
				objects = append(objects, c.workload)
			}
			for i, node := range []string{"node-spot", "node-spot", "node-od"} {
				pod := running(fmt.Sprintf("web-%d", i), fmt.Sprint(i), node)
				pod.OwnerReferences = []metav1.OwnerReference{c.owner}
				if node == "node-od" {
					pod.Annotations = map[string]string{spottest.DefaultKeys.Moved(): "true"}
				}
				objects = append(objects, pod)
			}
			r := newReleases(t, rolloutsAndCloneSets(t), objects...)
			r.cache(c.workload)
			if err := c.reconcile(r); err != nil || len(r.evicted) != moves {
				t.Errorf("%s with minReadySeconds %d: evicted %v, error %v", name, seconds, r.evicted, err)
			}
		}
	}
}

// Somebody paused a rollout half-way, a moment ago: the floor is restored all the same, as the Deployment says that it is paused.
func TestThatARolloutIsPausedReachesThePlan(t *testing.T) {
	for paused, moves := range map[bool]int{true: 1, false: 0} {
		d := deployment(2, "true", spottest.Annotations("spot-percentage", "100", "min-on-demand", "1"))
		d.Spec.Paused = paused
		cached := deployment(2, "true", d.Annotations)
		DeploymentKind(spottest.DefaultKeys).Keep(d, cached)
		newest := counted(1)
		newest.Name, newest.UID = "web-2", "set-web-2"
		pod := running("web-2-0", "0", "node-spot")
		pod.OwnerReferences[0].Name, pod.OwnerReferences[0].UID, pod.CreationTimestamp = newest.Name, newest.UID, metav1.Now()
		pod.Status.Conditions[0].LastTransitionTime = metav1.Now()
		r := newReleases(t, nil, namespace("true", nil), cached, counted(2), newest, running("web-1-0", "0", "node-spot"), running("web-1-1", "1", "node-spot"), pod)
		if r.round(t, cached); len(r.evicted) != moves {
			t.Errorf("paused %t: evicted %v", paused, r.evicted)
		}
	}
}
