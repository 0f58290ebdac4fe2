package fleet

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/test/kube"
)

// NodesOf are the names of the member's nodes of a capacity type, kube.Spot or kube.OnDemand.
func (m *Member) NodesOf(ctx context.Context, capacity string) ([]string, error) {
	var list corev1.NodeList
	if err := m.Client().List(ctx, &list, client.MatchingLabels{kube.CapacityLabel: capacity}); err != nil {
		return nil, fmt.Errorf("member %s: list the %s nodes: %w", m.Name, capacity, err)
	}
	names := make([]string, len(list.Items))
	for i := range list.Items {
		names[i] = list.Items[i].Name
	}
	return names, nil
}

// TakeAway removes all nodes of a capacity type with the pods on them, and returns how many there were.
func (m *Member) TakeAway(ctx context.Context, capacity string) (int, error) {
	names, err := m.NodesOf(ctx, capacity)
	if err != nil {
		return 0, err
	}
	return len(names), m.Cluster.RemoveNodes(ctx, names...)
}
