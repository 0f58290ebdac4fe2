package spot

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/clusters"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/capacity"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/internal/phrase"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
)

// WorkloadKind is a kind of workload that is placed because the configuration names it, beside Deployments, StatefulSets and
// ReplicaSets: one that can be scaled, and owns pods directly or through ReplicaSets. Use [NewWorkloadKind].
type WorkloadKind struct {
	schema.GroupVersionKind
	replicas, status []string // paths of the replicas that are wanted, and of those that are counted
}

// NewWorkloadKind reads a kind as a configuration names it. The paths are those of the scale subresource in its CRD,
// specReplicasPath and statusReplicasPath; empty: .spec.replicas and .status.replicas.
func NewWorkloadKind(apiVersion, kind, replicasPath, statusReplicasPath string) (WorkloadKind, error) {
	version, err := schema.ParseGroupVersion(apiVersion)
	if err != nil || version.Version == "" || len(validation.IsDNS1035Label(version.Version)) > 0 {
		return WorkloadKind{}, fmt.Errorf("API version %q: want group/version, such as argoproj.io/v1alpha1", phrase.Value(apiVersion))
	}
	switch version.Group {
	case "", appsv1.GroupName:
		return WorkloadKind{}, fmt.Errorf("API version %q: the built-in workload kinds need no entry", apiVersion)
	}
	if problems := validation.IsDNS1123Subdomain(version.Group); len(problems) > 0 {
		return WorkloadKind{}, fmt.Errorf("API version %q: its group: %s", phrase.Value(apiVersion), problems[0])
	}
	if problems := validation.IsDNS1035Label(strings.ToLower(kind)); len(problems) > 0 || strings.ToLower(kind) == kind {
		return WorkloadKind{}, fmt.Errorf("kind %q: want the kind as in manifests, such as Rollout", phrase.Value(kind))
	}
	k := WorkloadKind{GroupVersionKind: version.WithKind(kind)}
	if k.replicas, err = parsePath(replicasPath, "spec"); err != nil {
		return WorkloadKind{}, fmt.Errorf("replicas path of %s: %w", k.Name(), err)
	}
	if k.status, err = parsePath(statusReplicasPath, "status"); err != nil {
		return WorkloadKind{}, fmt.Errorf("status replicas path of %s: %w", k.Name(), err)
	}
	if problems := validation.IsDNS1035Label(k.Controller()); len(problems) > 0 {
		return WorkloadKind{}, fmt.Errorf("kind %s: its name and its group are too long together: %s", k.Name(), problems[0])
	}
	return k, nil
}

// parsePath reads a JSON path of names, as CRDs have them for the scale subresource.
func parsePath(text, root string) ([]string, error) {
	if text == "" {
		return []string{root, "replicas"}, nil
	}
	path, dotted := strings.CutPrefix(text, ".")
	names := strings.Split(path, ".")
	for _, name := range names {
		if name == "" || strings.ContainsAny(name, "[]'\"*?@ ") {
			dotted = false
		}
	}
	if !dotted || len(names) < 2 || names[0] != root {
		return nil, fmt.Errorf("%q: want a path of names such as .%s.replicas", phrase.Value(text), root)
	}
	return names, nil
}

// Name distinguishes the kind from one of the same name in another group: Rollout.argoproj.io.
func (k WorkloadKind) Name() string { return k.Kind + "." + k.Group }

// Controller is the name of the controller that reconciles the kind.
func (k WorkloadKind) Controller() string {
	return strings.ToLower(k.Kind) + "-" + strings.ReplaceAll(k.Group, ".", "-") + "-spot"
}

// definition caches no more of the kind's definition than that it is there, under the name that it has by convention. One of
// another name is not followed, nor one that the hub may not read: such a kind joins when it is next asked about.
func (k WorkloadKind) definition() clusters.Kind {
	resource, _ := meta.UnsafeGuessKindToResource(k.GroupVersionKind)
	return clusters.Kind{
		Object: &apiextensionsv1.CustomResourceDefinition{}, Names: []string{resource.GroupResource().String()},
		Keep: func(_, _ client.Object) {}, Optional: true, Companion: true,
	}
}

// object is an empty object of the kind.
func (k WorkloadKind) object() *unstructured.Unstructured {
	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(k.GroupVersionKind)
	return obj
}

// list is an empty list of the kind.
func (k WorkloadKind) list() *unstructured.UnstructuredList {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(k.GroupVersion().WithKind(k.Kind + "List"))
	return list
}

// Where the kinds that are known keep what else is read of them; a kind that has none of it is taken to be at rest.
var (
	observedGenerationPath = []string{"status", "observedGeneration"}
	updatedPath            = []string{"status", "updatedReplicas"}
	toBeUpdatedPath        = []string{"status", "expectedUpdatedReplicas"}
	pausedPath             = []string{"spec", "paused"}                   // of a Rollout
	updatePausedPath       = []string{"spec", "updateStrategy", "paused"} // of a CloneSet
	minReadyPath           = []string{"spec", "minReadySeconds"}
	selectorPath           = []string{"spec", "selector"}
	templatePath           = []string{"spec", "template"}
	templateLabelsPath     = []string{"spec", "template", "metadata", "labels"}
)

// cached declares what is cached of the kind: as with the others, what asks for placement, and of that what is read here.
func (k WorkloadKind) cached(keys policy.Keys, capacityType capacity.Labels) clusters.Kind {
	return clusters.Kind{Object: k.object(), Labels: enabledSelector(keys), Keep: func(from, into client.Object) {
		src, dst := from.(*unstructured.Unstructured), into.(*unstructured.Unstructured)
		dst.SetLabels(pick(src.GetLabels(), keys.Enabled()))
		dst.SetAnnotations(pickPrefix(src.GetAnnotations(), keys.Prefix, annotationShape))
		for _, path := range [][]string{k.replicas, k.status, observedGenerationPath, updatedPath, toBeUpdatedPath,
			pausedPath, updatePausedPath, minReadyPath, selectorPath, templateLabelsPath} {
			if value, ok, err := unstructured.NestedFieldCopy(src.Object, path...); ok && err == nil {
				_ = unstructured.SetNestedField(dst.Object, value, path...) // fails only where a parent is no map, and it is our own
			}
		}
		k.keepTemplate(dst, src, capacityType)
	}}
}

// keepTemplate notes the shape of the pods, for the kinds that own them directly.
func (k WorkloadKind) keepTemplate(into, from *unstructured.Unstructured, capacityType capacity.Labels) {
	content, ok, err := unstructured.NestedMap(from.Object, templatePath...)
	if _, whole := content["spec"]; !ok || err != nil || !whole {
		return
	}
	var template corev1.PodTemplateSpec
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content, &template); err != nil {
		return // it is no template of pods
	}
	annotations := into.GetAnnotations()
	carrier := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: into.GetNamespace(), Annotations: annotations}}
	keepShape(carrier, "", &template.Spec, "", capacityType)
	into.SetAnnotations(carrier.Annotations)
}

// template is what keepTemplate noted; nil: nothing.
func (k WorkloadKind) template(obj *unstructured.Unstructured) *template {
	labels, _, err := unstructured.NestedStringMap(obj.Object, templateLabelsPath...)
	if err != nil {
		labels = nil
	}
	return templateOf(obj, labels)
}

// wanted is how many replicas the spec asks for; one if it does not say.
func (k WorkloadKind) wanted(obj *unstructured.Unstructured) int {
	if n, ok := numberAt(obj, k.replicas); ok {
		return n
	}
	return 1
}

// counted is how many replicas its controller has counted.
func (k WorkloadKind) counted(obj *unstructured.Unstructured) int {
	n, _ := numberAt(obj, k.status)
	return n
}

// rolling reports whether the kind's controller is at work: it has not seen the spec yet, or not updated what it is to update
// (a partition leaves the rest as it is).
func (k WorkloadKind) rolling(obj *unstructured.Unstructured) bool {
	if seen, ok := numberAt(obj, observedGenerationPath); ok && int64(seen) < obj.GetGeneration() {
		return true
	}
	updated, counts := numberAt(obj, updatedPath)
	expected, bounded := numberAt(obj, toBeUpdatedPath)
	return counts && bounded && updated < expected
}

// stalled reports whether somebody paused its rollout.
func (k WorkloadKind) stalled(obj *unstructured.Unstructured) bool {
	for _, path := range [][]string{pausedPath, updatePausedPath} {
		if paused, ok, err := unstructured.NestedBool(obj.Object, path...); ok && err == nil && paused {
			return true
		}
	}
	return false
}

// minReady is how long a pod must have been ready to count as available; 0 for kinds that do not have that.
func (k WorkloadKind) minReady(obj *unstructured.Unstructured) time.Duration {
	n, _ := numberAt(obj, minReadyPath)
	return seconds(int32(min(max(n, 0), math.MaxInt32)))
}

// selector narrows the search for pods without a slot; one that cannot be read narrows nothing.
func (k WorkloadKind) selector(obj *unstructured.Unstructured) *metav1.LabelSelector {
	selector := &metav1.LabelSelector{}
	content, ok, err := unstructured.NestedMap(obj.Object, selectorPath...)
	if !ok || err != nil || runtime.DefaultUnstructuredConverter.FromUnstructured(content, selector) != nil {
		return &metav1.LabelSelector{}
	}
	return selector
}

// metaOf is the part of an object's metadata that the directory reads.
func metaOf(obj client.Object) *metav1.ObjectMeta {
	return &metav1.ObjectMeta{
		Namespace: obj.GetNamespace(), Name: obj.GetName(), UID: obj.GetUID(), Generation: obj.GetGeneration(),
		Labels: obj.GetLabels(), Annotations: obj.GetAnnotations(),
	}
}

// numberAt reads a number that is not negative; Argo Rollouts writes the observed generation as a text.
func numberAt(obj *unstructured.Unstructured, path []string) (int, bool) {
	value, ok, err := unstructured.NestedFieldNoCopy(obj.Object, path...)
	if !ok || err != nil {
		return 0, false
	}
	var n int64
	switch value := value.(type) {
	case int64:
		n = value
	case float64:
		n = int64(value)
	case string:
		if n, err = strconv.ParseInt(value, 10, 64); err != nil {
			return 0, false
		}
	default:
		return 0, false
	}
	return int(min(n, math.MaxInt32)), n >= 0
}

// kindTable knows whom pods and ReplicaSets belong to: by group and kind of their controller references, never by labels.
// The zero value knows Kubernetes' own kinds.
type kindTable []WorkloadKind

// newKindTable checks that no kind is named twice.
func newKindTable(kinds []WorkloadKind) (kindTable, error) {
	for i, k := range kinds {
		for _, other := range kinds[:i] {
			if other.Name() == k.Name() || other.Controller() == k.Controller() {
				return nil, errors.New("workload kind " + k.Name() + ": specified twice")
			}
		}
	}
	return kinds, nil
}

// owner names the kind of a pod's controller; "": its pods are not placed.
func (t kindTable) owner(apiVersion, kind string) string {
	if isApps(apiVersion) {
		switch kind {
		case kindReplicaSet:
			return kindReplicaSet
		case KindStatefulSet:
			return KindStatefulSet
		}
		return ""
	}
	return t.named(apiVersion, kind)
}

// workload names the kind of a ReplicaSet's controller; "": its pods are not placed.
func (t kindTable) workload(apiVersion, kind string) string {
	if kind == KindDeployment && isApps(apiVersion) {
		return KindDeployment
	}
	return t.named(apiVersion, kind)
}

func (t kindTable) named(apiVersion, kind string) string {
	group, _, ok := strings.Cut(apiVersion, "/")
	for i := range t {
		if ok && t[i].Kind == kind && t[i].Group == group {
			return t[i].Name()
		}
	}
	return ""
}

// find returns a configured kind by its name.
func (t kindTable) find(name string) (WorkloadKind, bool) {
	for i := range t {
		if t[i].Name() == name {
			return t[i], true
		}
	}
	return WorkloadKind{}, false
}

// of returns the configured kind of an object.
func (t kindTable) of(obj *unstructured.Unstructured) (WorkloadKind, bool) {
	return t.find(obj.GetKind() + "." + obj.GroupVersionKind().Group)
}

// workloadOfSet names the workload that a ReplicaSet belongs to: itself, when it has no controller. False: pods of its
// controller are not placed.
func (t kindTable) workloadOfSet(set metav1.Object) (policy.WorkloadKey, bool) {
	key := policy.WorkloadKey{Kind: KindReplicaSet, NamespacedName: types.NamespacedName{Namespace: set.GetNamespace(), Name: set.GetName()}}
	if ref := metav1.GetControllerOfNoCopy(set); ref != nil {
		key.Kind, key.Name = t.workload(ref.APIVersion, ref.Kind), ref.Name
	}
	return key, key.Kind != ""
}

// PlacedKind is a kind of workload that is placed.
type PlacedKind struct {
	// Name of the kind in keys, in the API and on the command line, for example Deployment or Rollout.argoproj.io.
	Name string
	// Controller reconciles it.
	Controller string
	// Cached is how the kind is named among those that are cached of a member, for example "apps/v1 Deployment".
	Cached string
	// Optional kinds are missing in many members, where their CRD is not installed.
	Optional bool
}

// placed are all kinds, Kubernetes' own first.
func (t kindTable) placed() []PlacedKind {
	kinds := []PlacedKind{
		{Name: KindDeployment, Controller: DeploymentController, Cached: "apps/v1 Deployment"},
		{Name: KindStatefulSet, Controller: StatefulSetController, Cached: "apps/v1 StatefulSet"},
		{Name: KindReplicaSet, Controller: ReplicaSetController, Cached: "apps/v1 ReplicaSet"},
	}
	for _, k := range t {
		kinds = append(kinds, PlacedKind{k.Name(), k.Controller(), k.GroupVersion().String() + " " + k.Kind, true})
	}
	return kinds
}
