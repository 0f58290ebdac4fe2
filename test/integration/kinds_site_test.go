package integration

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/test/fleet"
)

// Two kinds of workloads as others bring them, by the shape of their CRDs: one that owns pods, and one that owns ReplicaSets.
var (
	cloneSets = schema.GroupVersionKind{Group: "apps.kruise.io", Version: "v1alpha1", Kind: "CloneSet"}
	rollouts  = schema.GroupVersionKind{Group: "argoproj.io", Version: "v1alpha1", Kind: "Rollout"}
)

// install makes the CRD of a kind, with the scale subresource, and waits until it is served.
func install(ctx context.Context, m *fleet.Member, kind schema.GroupVersionKind, plural string) error {
	replicas := map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}
	crd := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": plural + "." + kind.Group},
		"spec": map[string]any{
			"group": kind.Group, "scope": "Namespaced", "names": map[string]any{"kind": kind.Kind, "plural": plural},
			"versions": []any{map[string]any{
				"name": kind.Version, "served": true, "storage": true,
				"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "properties": map[string]any{"spec": replicas, "status": replicas}}},
				"subresources": map[string]any{"status": map[string]any{}, "scale": map[string]any{
					"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas",
				}},
			}},
		},
	}}
	// The real ones are annotated so as well: a group of the community may be served by anybody.
	crd.SetAnnotations(map[string]string{"api-approved.kubernetes.io": "unapproved, for tests"})
	if err := m.Client().Create(ctx, crd); err != nil {
		return err
	}
	return fleet.Await(ctx, plural+" to be served", func(ctx context.Context) (bool, error) {
		err := m.Client().List(ctx, listOf(kind))
		return err == nil, err
	})
}

// letRead allows the hub to read the plurals.
func letRead(ctx context.Context, m *fleet.Member) error {
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "further-workloads"}, Rules: []rbacv1.PolicyRule{{
		APIGroups: []string{cloneSets.Group, rollouts.Group}, Resources: []string{"clonesets", "rollouts"}, Verbs: []string{"get", "list", "watch"},
	}}}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: role.ObjectMeta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: fleet.HubUser}},
	}
	return errors.Join(m.Client().Create(ctx, role), m.Client().Create(ctx, binding))
}

func listOf(kind schema.GroupVersionKind) *unstructured.UnstructuredList {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	return list
}

// further is a workload of one of the kinds, with the spec of a Deployment.
func further(t *testing.T, kind schema.GroupVersionKind, namespace, name string, replicas int, annotations map[string]string) *unstructured.Unstructured {
	t.Helper()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(fleet.Deployment(namespace, name, replicas, annotations))
	if err != nil {
		t.Fatal(err)
	}
	delete(content, "status")
	object := &unstructured.Unstructured{Object: content}
	object.SetGroupVersionKind(kind)
	return object
}

// furtherControllers do in a member what the controllers of the kinds do, by looking at everything again and again.
type furtherControllers struct {
	member *fleet.Member
	log    func(format string, args ...any)
}

// runControllers looks after both kinds until the test ends.
func runControllers(t *testing.T, m *fleet.Member) {
	ctx, cancel := context.WithCancel(context.Background())
	c := &furtherControllers{member: m, log: t.Logf}
	var running sync.WaitGroup
	for kind, tend := range map[schema.GroupVersionKind]func(context.Context, *unstructured.Unstructured) error{
		cloneSets: c.tendCloneSet, rollouts: c.tendRollout,
	} {
		running.Go(func() { c.run(ctx, kind, tend) })
	}
	t.Cleanup(func() {
		cancel()
		running.Wait()
	})
}

func (c *furtherControllers) run(ctx context.Context, kind schema.GroupVersionKind, tend func(context.Context, *unstructured.Unstructured) error) {
	again := time.NewTicker(50 * time.Millisecond)
	defer again.Stop()
	for ctx.Err() == nil {
		list := listOf(kind)
		_ = c.member.Client().List(ctx, list) // not installed yet
		for i := range list.Items {
			if err := tend(ctx, &list.Items[i]); err != nil && ctx.Err() == nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
				c.log("%s %s: %v", kind.Kind, list.Items[i].GetName(), err)
			}
		}
		select {
		case <-ctx.Done():
		case <-again.C:
		}
	}
}

func specOf(object *unstructured.Unstructured) (*appsv1.DeploymentSpec, error) {
	spec := &appsv1.DeploymentSpec{}
	content, _, err := unstructured.NestedMap(object.Object, "spec")
	if err != nil {
		return nil, err
	}
	return spec, runtime.DefaultUnstructuredConverter.FromUnstructured(content, spec)
}

func ownerOf(object *unstructured.Unstructured) []metav1.OwnerReference {
	return []metav1.OwnerReference{*metav1.NewControllerRef(object, object.GroupVersionKind())}
}

// tendCloneSet makes the pods that are missing and deletes those too many, in the order that OpenKruise has: not bound, not
// ready, then by deletion cost.
func (c *furtherControllers) tendCloneSet(ctx context.Context, set *unstructured.Unstructured) error {
	spec, err := specOf(set)
	if err != nil {
		return err
	}
	var all corev1.PodList
	if err := c.member.Client().List(ctx, &all, client.InNamespace(set.GetNamespace())); err != nil {
		return err
	}
	pods := slices.DeleteFunc(all.Items, func(pod corev1.Pod) bool {
		return !metav1.IsControlledBy(&pod, set) || pod.DeletionTimestamp != nil || fleet.Finished(&pod)
	})
	slices.SortFunc(pods, func(a, b corev1.Pod) int {
		return cmp.Or(order(a.Spec.NodeName != "")-order(b.Spec.NodeName != ""), order(fleet.Ready(&a))-order(fleet.Ready(&b)), costOf(&a)-costOf(&b))
	})
	var problems []error
	var work sync.WaitGroup
	var mu sync.Mutex
	do := func(err error) {
		mu.Lock()
		defer mu.Unlock()
		problems = append(problems, client.IgnoreNotFound(err))
	}
	wanted := int(*spec.Replicas)
	for range max(wanted-len(pods), 0) {
		work.Go(func() {
			pod := &corev1.Pod{ObjectMeta: *spec.Template.ObjectMeta.DeepCopy(), Spec: *spec.Template.Spec.DeepCopy()}
			pod.Namespace, pod.GenerateName, pod.OwnerReferences = set.GetNamespace(), set.GetName()+"-", ownerOf(set)
			do(c.member.Client().Create(ctx, pod))
		})
	}
	for _, pod := range pods[:max(len(pods)-wanted, 0)] {
		work.Go(func() { do(c.member.Client().Delete(ctx, &pod)) })
	}
	work.Wait()
	return errors.Join(append(problems, c.report(ctx, set, map[string]any{
		"replicas": len(pods), "observedGeneration": set.GetGeneration(), "updatedReplicas": len(pods), "expectedUpdatedReplicas": len(pods),
	}))...)
}

func order(yes bool) int {
	if yes {
		return 1
	}
	return 0
}

func costOf(pod *corev1.Pod) int {
	cost, _ := strconv.Atoi(pod.Annotations["controller.kubernetes.io/pod-deletion-cost"])
	return cost
}

// tendRollout keeps one ReplicaSet for each template that there was: the newest has all replicas, and the others have theirs
// until it is ready.
func (c *furtherControllers) tendRollout(ctx context.Context, rollout *unstructured.Unstructured) error {
	spec, err := specOf(rollout)
	if err != nil {
		return err
	}
	text, err := json.Marshal(spec.Template)
	if err != nil {
		return err
	}
	sum := fnv.New32a()
	_, _ = sum.Write(text)
	newest := fmt.Sprintf("%s-%x", rollout.GetName(), sum.Sum32())
	var all appsv1.ReplicaSetList
	if err := c.member.Client().List(ctx, &all, client.InNamespace(rollout.GetNamespace())); err != nil {
		return err
	}
	sets := slices.DeleteFunc(all.Items, func(set appsv1.ReplicaSet) bool { return !metav1.IsControlledBy(&set, rollout) })
	if !slices.ContainsFunc(sets, func(set appsv1.ReplicaSet) bool { return set.Name == newest }) {
		return c.member.Client().Create(ctx, replicaSetOf(rollout, spec, newest, sum.Sum32()))
	}
	ready, replicas := false, 0
	var problems []error
	for i := range sets {
		replicas += int(sets[i].Status.Replicas)
		if sets[i].Name == newest {
			ready = sets[i].Status.ReadyReplicas == *spec.Replicas
			problems = append(problems, c.scale(ctx, &sets[i], *spec.Replicas))
		}
	}
	for i := range sets {
		if sets[i].Name != newest && ready {
			problems = append(problems, c.scale(ctx, &sets[i], 0))
		}
	}
	return errors.Join(append(problems, c.report(ctx, rollout, map[string]any{
		"replicas": replicas, "HPAReplicas": replicas, "observedGeneration": strconv.FormatInt(rollout.GetGeneration(), 10),
	}))...)
}

func replicaSetOf(rollout *unstructured.Unstructured, spec *appsv1.DeploymentSpec, name string, hash uint32) *appsv1.ReplicaSet {
	set := &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: rollout.GetNamespace(), Name: name, OwnerReferences: ownerOf(rollout)},
		Spec:       appsv1.ReplicaSetSpec{Replicas: spec.Replicas, Template: *spec.Template.DeepCopy(), Selector: spec.Selector.DeepCopy()},
	}
	label := fmt.Sprintf("%x", hash)
	set.Spec.Template.Labels["rollouts-pod-template-hash"] = label
	set.Spec.Selector.MatchLabels["rollouts-pod-template-hash"] = label
	return set
}

func (c *furtherControllers) scale(ctx context.Context, set *appsv1.ReplicaSet, replicas int32) error {
	if ptr.Deref(set.Spec.Replicas, 1) == replicas {
		return nil
	}
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas))
	return c.member.Client().Patch(ctx, set, patch)
}

// report writes a status that has changed.
func (c *furtherControllers) report(ctx context.Context, object *unstructured.Unstructured, status map[string]any) error {
	before, _, _ := unstructured.NestedMap(object.Object, "status")
	if fmt.Sprint(before) == fmt.Sprint(status) {
		return nil
	}
	content, err := json.Marshal(map[string]any{"status": status})
	if err != nil {
		return err
	}
	return c.member.Client().Status().Patch(ctx, object, client.RawPatch(types.MergePatchType, content))
}
