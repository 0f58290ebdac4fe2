package enroll

import (
	"context"
	"fmt"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/restmapper"
)

// PausedSuffix ends the name of the annotation, "true" or "false", of a workload of which nothing is moved; the hub's annotation prefix
// stands before it.
const PausedSuffix = "/paused"

// MarkWorkload sets an annotation of a workload in a member, or removes it for an empty value, and touches nothing else. kind is as kubectl
// takes it, with its group where it is not one of Kubernetes' own.
func MarkWorkload(ctx context.Context, member *Context, namespace, kind, name, annotation, value string) (Change, error) {
	cluster, err := Connect(SideMember, member)
	if err != nil {
		return Change{}, err
	}
	resource, err := cluster.resource(kind)
	if err != nil {
		return Change{}, err
	}
	body := &unstructured.Unstructured{}
	body.SetNamespace(namespace)
	body.SetName(name)
	workload := object{resource: resource, body: body}
	found, err := cluster.client(workload).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return Change{Side: SideMember, Object: workload.String(), Action: Unchanged}, cluster.failed("read "+workload.String(), err)
	}
	return cluster.mark(ctx, workload, found, annotation, value)
}

// resource finds out what the cluster calls a kind.
func (c *Cluster) resource(kind string) (schema.GroupVersionResource, error) {
	groups, err := restmapper.GetAPIGroupResources(c.typed.Discovery())
	if err != nil {
		return schema.GroupVersionResource{}, c.failed("discover its kinds", err)
	}
	mapper := restmapper.NewShortcutExpander(restmapper.NewDiscoveryRESTMapper(groups), c.typed.Discovery(), nil)
	asked := schema.ParseGroupResource(kind)
	resource, err := mapper.ResourceFor(asked.WithVersion(""))
	if apimeta.IsNoMatchError(err) {
		return resource, c.failed("find the kind", fmt.Errorf("the cluster has no %s", kind))
	}
	if err != nil {
		return resource, c.failed("find the kind", err)
	}
	return resource, nil
}
