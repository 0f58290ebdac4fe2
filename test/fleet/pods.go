package fleet

import (
	"context"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/test/kube"
)

// nodeTypes remembers the capacity type of nodes by name, by whatever label shows it.
type nodeTypes struct {
	mu    sync.Mutex
	known map[string]string
}

// capacityOf is kube.Spot, kube.OnDemand or "" for a node; unknown nodes are looked up.
func (m *Member) capacityOf(ctx context.Context, node string) (string, error) {
	m.nodes.mu.Lock()
	defer m.nodes.mu.Unlock()
	if capacity, ok := m.nodes.known[node]; ok {
		return capacity, nil
	}
	var list corev1.NodeList
	if err := m.Client().List(ctx, &list); err != nil {
		return "", fmt.Errorf("member %s: list nodes: %w", m.Name, err)
	}
	if m.nodes.known == nil {
		m.nodes.known = map[string]string{}
	}
	for i := range list.Items {
		if _, known := m.nodes.known[list.Items[i].Name]; !known {
			m.nodes.known[list.Items[i].Name] = kube.CapacityOf(list.Items[i].Labels)
		}
	}
	return m.nodes.known[node], nil
}

// CapacityOf is where a pod is, kube.Spot or kube.OnDemand: by its node or, while it has none, by its nodeSelector.
// Empty: neither shows it.
func (m *Member) CapacityOf(ctx context.Context, pod *corev1.Pod) (string, error) {
	if pod.Spec.NodeName == "" {
		return pod.Spec.NodeSelector[kube.CapacityLabel], nil
	}
	return m.capacityOf(ctx, pod.Spec.NodeName)
}

// A Mix counts the pods of a workload.
type Mix struct {
	Spot, OnDemand, Unknown int // pods that are alive, by capacity type
	Ready                   int // those of them that are ready
	Leaving                 int // pods that are being deleted
}

// All is how many pods are alive.
func (m Mix) All() int { return m.Spot + m.OnDemand + m.Unknown }

// String is for messages.
func (m Mix) String() string {
	return fmt.Sprintf("%d spot, %d on-demand, %d unknown (%d ready, %d leaving)", m.Spot, m.OnDemand, m.Unknown, m.Ready, m.Leaving)
}

// Pods lists the workload's pods live.
func (w *Workload) Pods(ctx context.Context) ([]corev1.Pod, error) {
	var list corev1.PodList
	err := w.Member.Client().List(ctx, &list, client.InNamespace(w.Namespace), client.MatchingLabels{AppLabel: w.Name})
	if err != nil {
		return nil, fmt.Errorf("list the pods of %s: %w", w, err)
	}
	return list.Items, nil
}

// Mix counts the workload's pods live.
func (w *Workload) Mix(ctx context.Context) (Mix, error) {
	pods, err := w.Pods(ctx)
	if err != nil {
		return Mix{}, err
	}
	var mix Mix
	for i := range pods {
		capacity, err := w.Member.CapacityOf(ctx, &pods[i])
		if err != nil {
			return Mix{}, err
		}
		mix.add(&pods[i], capacity)
	}
	return mix, nil
}

func (m *Mix) add(pod *corev1.Pod, capacity string) {
	if pod.DeletionTimestamp != nil {
		m.Leaving++
		return
	}
	if Finished(pod) {
		return
	}
	switch capacity {
	case kube.Spot:
		m.Spot++
	case kube.OnDemand:
		m.OnDemand++
	default:
		m.Unknown++
	}
	if Ready(pod) {
		m.Ready++
	}
}

// Finished reports whether a pod has run to its end.
func Finished(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// Ready reports whether a pod serves.
func Ready(pod *corev1.Pod) bool {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}

// AwaitReady waits until exactly that many pods are there, all of them ready and none leaving, and counts them.
func (w *Workload) AwaitReady(ctx context.Context, replicas int) (Mix, error) {
	var mix Mix
	err := Await(ctx, fmt.Sprintf("%d replicas of %s", replicas, w), func(ctx context.Context) (bool, error) {
		var err error
		if mix, err = w.Mix(ctx); err != nil {
			return false, err
		}
		if mix.All() != replicas || mix.Ready != replicas || mix.Leaving > 0 {
			return false, fmt.Errorf("there are %s", mix)
		}
		return true, nil
	})
	return mix, err
}

// AwaitMix waits until the pods are ready where they belong.
func (w *Workload) AwaitMix(ctx context.Context, spot, onDemand int) error {
	return Await(ctx, fmt.Sprintf("%d spot and %d on-demand replicas of %s", spot, onDemand, w), func(ctx context.Context) (bool, error) {
		mix, err := w.Mix(ctx)
		if err != nil {
			return false, err
		}
		if mix != (Mix{Spot: spot, OnDemand: onDemand, Ready: spot + onDemand}) {
			return false, fmt.Errorf("there are %s", mix)
		}
		return true, nil
	})
}
