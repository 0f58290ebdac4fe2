package kube

import (
	"context"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// startsUnready has nodes with the annotation [NodeStart] say from the first moment that they are not ready, as a kubelet does. Those
// that Karpenter's provider makes say nothing of themselves. Such a node loses the taint that keeps pods away; and of pods that come
// before it is ready Kubernetes says once that they are not ready either, which no kubelet takes back here.
const startsUnready = "nodes-start-unready"

// unready is in CEL.
const unready = `Object{status: Object.status{conditions: [Object.status.conditions{
	type: "Ready", status: "False", reason: "KubeletNotReady", message: "container runtime network not ready"}]}}`

// startUnready installs that, and waits until it holds.
func (c *Cluster) startUnready(ctx context.Context) error {
	meta := metav1.ObjectMeta{Name: startsUnready}
	for _, object := range []client.Object{
		&admissionregistrationv1.MutatingAdmissionPolicy{ObjectMeta: meta, Spec: admissionregistrationv1.MutatingAdmissionPolicySpec{
			MatchConstraints: &admissionregistrationv1.MatchResources{ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{
				RuleWithOperations: admissionregistrationv1.RuleWithOperations{
					Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
					Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"nodes"}},
				},
			}}},
			MatchConditions: []admissionregistrationv1.MatchCondition{{
				Name:       "starts",
				Expression: `has(object.metadata.annotations) && "` + NodeStart + `" in object.metadata.annotations && !has(object.status.conditions)`,
			}},
			FailurePolicy:      ptr.To(admissionregistrationv1.Fail),
			ReinvocationPolicy: admissionregistrationv1.NeverReinvocationPolicy,
			Mutations: []admissionregistrationv1.Mutation{{
				PatchType:          admissionregistrationv1.PatchTypeApplyConfiguration,
				ApplyConfiguration: &admissionregistrationv1.ApplyConfiguration{Expression: unready},
			}},
		}},
		&admissionregistrationv1.MutatingAdmissionPolicyBinding{
			ObjectMeta: meta, Spec: admissionregistrationv1.MutatingAdmissionPolicyBindingSpec{PolicyName: startsUnready},
		},
	} {
		if err := c.client.Create(ctx, object); err != nil {
			return err
		}
	}
	return c.await(ctx, "nodes to start unready", func(ctx context.Context) (bool, error) {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: startsUnready, Annotations: map[string]string{NodeStart: "1"}}}
		err := c.client.Create(ctx, node, client.DryRunAll)
		return err == nil && len(node.Status.Conditions) > 0, err
	})
}
