package kube

import (
	"context"
	"fmt"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// NodeStart is the annotation of a node that takes so many seconds from its creation until it is ready.
const NodeStart = "kube.plimsoll.dev/node-start"

const (
	nodeStartPolicy = "nodes-start-unready"
	// startsUnready is the condition that a kubelet reports from its first moment, for a node with the annotation.
	startsUnready = `Object{status: Object.status{conditions: [
		Object.status.conditions{type: "Ready", status: "False", reason: "` + kubeletNotReady + `"}]}}`
	hasNodeStart    = `has(object.metadata.annotations) && "` + NodeStart + `" in object.metadata.annotations`
	kubeletNotReady = "KubeletNotReady"
)

// startNodesUnready has the API server add to each node that has the annotation NodeStart and that others create, as Karpenter's
// provider does, that it is not ready. A node that reports nothing loses the taint that keeps pods away, pods are bound to it,
// and the controller that then finds the node unready marks them so; only a kubelet would take that back.
func (c *Cluster) startNodesUnready(ctx context.Context) error {
	name := metav1.ObjectMeta{Name: nodeStartPolicy}
	policy := &admissionregistrationv1.MutatingAdmissionPolicy{ObjectMeta: name, Spec: admissionregistrationv1.MutatingAdmissionPolicySpec{
		MatchConstraints: &admissionregistrationv1.MatchResources{
			ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{RuleWithOperations: admissionregistrationv1.RuleWithOperations{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
				Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"nodes"}},
			}}},
		},
		MatchConditions: []admissionregistrationv1.MatchCondition{{Name: "takes-a-time", Expression: hasNodeStart}},
		Mutations: []admissionregistrationv1.Mutation{{
			PatchType:          admissionregistrationv1.PatchTypeApplyConfiguration,
			ApplyConfiguration: &admissionregistrationv1.ApplyConfiguration{Expression: startsUnready},
		}},
		ReinvocationPolicy: admissionregistrationv1.NeverReinvocationPolicy,
	}}
	binding := &admissionregistrationv1.MutatingAdmissionPolicyBinding{ObjectMeta: name,
		Spec: admissionregistrationv1.MutatingAdmissionPolicyBindingSpec{PolicyName: nodeStartPolicy}}
	for _, object := range []client.Object{policy, binding} {
		if err := c.client.Create(ctx, object); err != nil {
			return fmt.Errorf("create the policy of nodes' starts: %w", err)
		}
	}
	return c.await(ctx, "new nodes to start unready", func(ctx context.Context) (bool, error) {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "trial", Annotations: map[string]string{NodeStart: "1"}}}
		err := c.client.Create(ctx, node, client.DryRunAll)
		return err == nil && len(node.Status.Conditions) > 0, err
	})
}
