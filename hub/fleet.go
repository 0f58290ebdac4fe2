package hub

import (
	"context"
	"fmt"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/clusters"
	"github.com/plimsoll-dev/plimsoll/hub/config"
	"github.com/plimsoll-dev/plimsoll/reconcile/fleet/placing"
	"github.com/plimsoll-dev/plimsoll/reconcile/fleet/v1alpha1"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
)

// buildFleet creates what keeps FleetPlacements, after spot placement, which is notified of those that there are before it begins.
func (h *Hub) buildFleet(ctx context.Context) error {
	if !h.config.Fleet.Enabled {
		return nil
	}
	live, err := client.NewWithWatch(rest.CopyConfig(h.hubConfig), client.Options{Scheme: h.scheme})
	if err != nil {
		return fmt.Errorf("hub cluster: %w", err)
	}
	keys, err := policy.NewKeys(h.config.Spot.AnnotationPrefix)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	namespaces, err := metav1.LabelSelectorAsSelector(&h.config.NamespaceSelector)
	if err != nil {
		return fmt.Errorf("namespaceSelector: %w", err)
	}
	members := &fleetMembers{provider: h.provider, readOnly: readOnlyBy(h.provider), cordoned: cordonedMember(h.provider), lost: map[string]time.Time{}}
	history, folder := fleetHistory(&h.config)
	controller, err := placing.New(ctx, placing.Options{
		Hub: live, Members: members.list, Connect: members.connect, Workloads: h.engine, Kinds: h.resources(), Enabled: keys.Enabled(), NamespaceSelector: namespaces,
		Acts:    func(member string) bool { _, mine := h.ownership.Mine(member); return mine },
		ActsAny: h.ownership.MineAny, History: history, HistoryFolder: folder, Events: h.manager.GetLocalManager().GetEventRecorder("plimsoll-hub"),
		Log: h.log.With("part", "fleet placement"), Registerer: h.registry,
	})
	if err != nil {
		return fmt.Errorf("fleet placement: %w", err)
	}
	h.fleet = controller
	h.tasks = append(h.tasks, task{"fleet placement", controller.Run})
	return nil
}

// flushTime bounds what the fleet's history may take of a stop.
const flushTime = 5 * time.Second

// flushFleet writes what the fleet's history has noted last.
func (h *Hub) flushFleet() {
	if h.fleet == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), flushTime)
	defer cancel()
	h.fleet.Flush(ctx)
}

// fleetHistory is where the fleet's past is kept: a ConfigMap, or a folder, or neither.
func fleetHistory(c *config.Config) (configMap types.NamespacedName, folder string) {
	if c.Fleet.History.ConfigMap != "" {
		configMap = types.NamespacedName{Namespace: c.Hub.Namespace, Name: c.Fleet.History.ConfigMap}
	}
	return configMap, c.Fleet.History.Folder
}

// fleetMembers are the members as fleet placement sees them.
type fleetMembers struct {
	provider *clusters.Provider
	readOnly func(member string) string
	cordoned func(member string) bool

	mu   sync.Mutex
	lost map[string]time.Time // members that cannot be worked in, and since when this replica knows
}

// list returns the registered members. One whose breaker is open cannot be reached, whatever its last probe said.
func (m *fleetMembers) list() []placing.Member {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []placing.Member
	there := map[string]bool{}
	for _, status := range m.provider.Statuses() {
		member, engaged := m.provider.Member(status.Name)
		one := placing.Member{
			Name: status.Name, Labels: status.Registration.Labels, Annotations: status.Registration.Annotations, ReadOnly: m.readOnly(status.Name) != "", Cordoned: m.cordoned(status.Name),
			Reachable: (status.State == clusters.StateReady || status.State == clusters.StateDegraded) && engaged && !member.BreakerOpen(),
		}
		if there[status.Name] = true; one.Reachable {
			delete(m.lost, status.Name)
		} else if m.lost[status.Name].IsZero() {
			m.lost[status.Name] = lostSince(&status, time.Now())
		}
		one.Since = m.lost[status.Name]
		all = append(all, one)
	}
	for name := range m.lost {
		if !there[name] {
			delete(m.lost, name)
		}
	}
	return all
}

// lostSince is since when a member that cannot be worked in is out of reach, as far as anybody knows: since its last answer. What was
// found out later by some failed probes was so before.
func lostSince(status *clusters.Status, now time.Time) time.Time {
	if status.LastAnswer.IsZero() || status.LastAnswer.After(now) {
		return now
	}
	return status.LastAnswer
}

// connect returns the way to a member.
func (m *fleetMembers) connect(name string) (placing.Connection, bool) {
	member, ok := m.provider.Member(name)
	if !ok {
		return placing.Connection{}, false
	}
	return placing.Connection{Client: member.GetClient(), Live: member.Live()}, true
}

// fleetPlacements shows what the controller of FleetPlacements knows, which is made after the first that ask for it and before they
// serve.
type fleetPlacements struct{ hub *Hub }

func (f fleetPlacements) Synced() bool         { return f.hub.fleet.Synced() }
func (f fleetPlacements) Version() uint64      { return f.hub.fleet.Version() }
func (f fleetPlacements) Namespaces() []string { return f.hub.fleet.Namespaces() }
func (f fleetPlacements) Placements(namespace string) []*v1alpha1.FleetPlacement {
	return f.hub.fleet.Placements(namespace)
}

func (f fleetPlacements) Placement(namespace, name string) (*v1alpha1.FleetPlacement, bool) {
	return f.hub.fleet.Placement(namespace, name)
}

func (f fleetPlacements) Explain(namespace, name string) (placing.Explanation, bool) {
	return f.hub.fleet.Explain(namespace, name)
}

func (f fleetPlacements) Suppose(namespace, name string, h placing.Hypothesis) (placing.Supposition, bool) {
	return f.hub.fleet.Suppose(namespace, name, h)
}
