package nodes

import (
	"context"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/capacity"
)

// kindNodeClaims names Karpenter's claims for nodes, as the rights to read them do.
const kindNodeClaims = "nodeclaims.karpenter.sh"

var nodeClaimList = schema.GroupVersionKind{Group: "karpenter.sh", Version: "v1", Kind: "NodeClaimList"}

// nodeClaim is what is kept of a claim for a node that is not there yet.
type nodeClaim struct {
	made        time.Time
	labels      map[string]string // the node's, as far as they are known by now
	required    []corev1.NodeSelectorRequirement
	cpu, memory int64 // what pods can have of it, as in a [capacity.Requirements]; 0: not known yet
}

// nodeClaims returns the claims whose nodes are on their way.
func (s *Autoscalers) nodeClaims(ctx context.Context) signsRead {
	return s.read(ctx, kindNodeClaims, func(ctx context.Context, into *signsRead) error {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(nodeClaimList)
		return s.pages(ctx, list, func() {
			for i := range list.Items {
				if claim, coming := nodeClaimOf(&list.Items[i]); coming {
					into.claims = append(into.claims, claim)
				}
			}
		}, func() { into.claims = nil })
	})
}

// nodeClaimOf reads a claim; false when its node is there already, or was not launched.
func nodeClaimOf(obj *unstructured.Unstructured) (nodeClaim, bool) {
	if obj.GetDeletionTimestamp() != nil || !conditionTrue(obj, "Launched") || conditionTrue(obj, "Initialized") {
		return nodeClaim{}, false
	}
	c := nodeClaim{made: obj.GetCreationTimestamp().Time, labels: obj.GetLabels(), required: requirementsAt(obj, "spec", "requirements")}
	allocatable, _, _ := unstructured.NestedStringMap(obj.Object, "status", "allocatable")
	cpu, memory := amountOf(allocatable["cpu"]), amountOf(allocatable["memory"])
	c.cpu, c.memory = cpu.MilliValue(), memory.Value()
	return c, true
}

// amountOf reads an amount of a resource as controllers write them; zero for anything else, such as exponents, which are cheap to
// write and dear to read.
func amountOf(text string) resource.Quantity {
	if len(text) > 24 || strings.ContainsAny(strings.TrimSuffix(text, "E"), "eE") {
		return resource.Quantity{}
	}
	q, err := resource.ParseQuantity(text)
	if err != nil {
		return resource.Quantity{}
	}
	return q
}

func conditionTrue(obj *unstructured.Unstructured, kind string) bool {
	conditions, _, _ := unstructured.NestedSlice(obj.Object, "status", "conditions")
	for _, item := range conditions {
		c, _ := item.(map[string]any)
		if c["type"] == kind {
			return c["status"] == "True"
		}
	}
	return false
}

// comesFor reports whether a claim's node is on its way, and may be one for a pod.
func (c *nodeClaim) comesFor(pod *Awaited, needs capacity.NodeRequirements, capacityType capacity.Labels, now time.Time, limit time.Duration) bool {
	if now.Sub(c.made) >= limit || c.of(capacityType) != pod.Capacity {
		return false
	}
	if (c.cpu > 0 && pod.Requirements.CPU > c.cpu) || (c.memory > 0 && pod.Requirements.Memory > c.memory) {
		return false
	}
	return needs.MayFit(c.labels)
}

// of is the capacity type of a claim's node: by the label that it gets when it is launched, else by what was asked for.
func (c *nodeClaim) of(capacityType capacity.Labels) capacity.Type {
	if known := capacityType.OfNode(c.labels); known != capacity.Unknown {
		return known
	}
	for i := range c.required {
		if known := capacityType.OfExpression(&c.required[i]); known != capacity.Unknown {
			return known
		}
	}
	return capacity.Unknown
}
