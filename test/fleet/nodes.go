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

// AddProviderNodes adds nodes of a capacity type, kube.Spot or kube.OnDemand, that carry the labels of a provider in place of
// [kube.CapacityLabel]; spec.Capacity is not set. Pods on them count as of that type.
func (m *Member) AddProviderNodes(ctx context.Context, n int, capacity string, spec kube.NodeSpec) error {
	names, err := m.Cluster.AddNodes(ctx, n, spec)
	if err != nil {
		return err
	}
	m.nodes.mu.Lock()
	defer m.nodes.mu.Unlock()
	if m.nodes.known == nil {
		m.nodes.known = map[string]string{}
	}
	for _, name := range names {
		m.nodes.known[name] = capacity
	}
	return nil
}

// TakeAway removes all nodes of a capacity type with the pods on them, and returns how many there were.
func (m *Member) TakeAway(ctx context.Context, capacity string) (int, error) {
	names, err := m.NodesOf(ctx, capacity)
	if err != nil {
		return 0, err
	}
	return len(names), m.Cluster.RemoveNodes(ctx, names...)
}
