package report

import (
	"cmp"
	"maps"
	"slices"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/capacity"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/plan"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
)

const (
	// DefaultWorkloadSeries is how many workloads of a member have series of their own.
	DefaultWorkloadSeries = 2000
	// otherWorkloads represents namespace, kind and name of those that have none. No Kubernetes name has an underscore.
	otherWorkloads = "_other"
)

var workloadReplicas = prometheus.NewDesc(prometheus.BuildFQName(metricsNamespace, "", "workload_replicas"),
	"Replicas of a workload by capacity type; count is wanted (by the policy) or actual. Workloads of a member beyond "+
		"metrics.workloadsPerMember are added up as "+otherWorkloads+", where actual counts at most the wanted number of each.",
	[]string{"member", "namespace", "kind", "name", "capacity", "count"}, nil)

var workloadFloorMissing = prometheus.NewDesc(prometheus.BuildFQName(metricsNamespace, "", "workload_floor_missing"),
	"On-demand replicas that a workload lacks of its floor, without those that only wait for the disruption window; 0 while it is "+
		"read-only or paused, or its policy is invalid. Workloads beyond metrics.workloadsPerMember are added up as "+otherWorkloads+".",
	[]string{"member", "namespace", "kind", "name"}, nil)

var workloadMisplaced = prometheus.NewDesc(prometheus.BuildFQName(metricsNamespace, "", "workload_misplaced"),
	"Replicas of a workload on another capacity type than its policy wants; 0 while it is read-only or paused, or its disruption window is "+
		"closed. Workloads beyond metrics.workloadsPerMember are added up as "+otherWorkloads+".",
	[]string{"member", "namespace", "kind", "name"}, nil)

// replicaCounts are the values of a workload.
type replicaCounts struct {
	spotWanted, spotActual, onDemandWanted, onDemandActual int
	// floorMissing and misplaced leave out what nobody expects the hub to change now.
	floorMissing, misplaced int
}

// countsOf are the values that a plan's outcome gives.
func countsOf(v *Workload) replicaCounts {
	counts := replicaCounts{spotWanted: v.SpotWanted, spotActual: v.SpotActual, onDemandWanted: v.OnDemandWanted, onDemandActual: v.OnDemandActual}
	if v.State == plan.StateUnmanaged || v.waitsFor(plan.WaitReadOnly) || v.waitsFor(plan.WaitPaused) || v.Policy.ReadOnly != policy.SourceNone || v.Policy.Paused != policy.SourceNone {
		return counts
	}
	if mix := v.Policy.Mix(); mix.Managed && v.Policy.Valid() {
		counts.floorMissing = max(0, min(mix.Floor, v.Replicas)-v.OnDemandActual)
	}
	// What is there too little of one type and too much of the other: replicas that are missing altogether are not misplaced.
	if v.waitsFor(plan.WaitWindow) { // what runs on spot and belongs on-demand is there and waits, as the policy wants
		counts.floorMissing = max(0, counts.floorMissing-max(0, v.SpotActual-v.SpotWanted))
	} else {
		counts.misplaced = max(min(v.SpotActual-v.SpotWanted, v.OnDemandWanted-v.OnDemandActual), min(v.OnDemandActual-v.OnDemandWanted, v.SpotWanted-v.SpotActual), 0)
	}
	return counts
}

func (v *Workload) waitsFor(kind plan.WaitKind) bool {
	return slices.ContainsFunc(v.Waits, func(w plan.Wait) bool { return w.Kind == kind })
}

// others adds a workload to those without series of their own. The surplus of one does not hide what another lacks.
func (c *replicaCounts) others(of replicaCounts) {
	c.spotWanted += of.spotWanted
	c.onDemandWanted += of.onDemandWanted
	c.spotActual += min(of.spotActual, of.spotWanted)
	c.onDemandActual += min(of.onDemandActual, of.onDemandWanted)
	c.floorMissing += of.floorMissing
	c.misplaced += of.misplaced
}

// workloadSeries shows the replicas of workloads. How many series a member has is bounded: whoever may create workloads could
// otherwise fill the hub's memory and Prometheus's. It may be used concurrently.
type workloadSeries struct {
	limit int // of workloads of a member

	mu      sync.Mutex
	members map[string]map[policy.WorkloadKey]replicaCounts
}

func newWorkloadSeries(limit int) *workloadSeries {
	return &workloadSeries{limit: cmp.Or(limit, DefaultWorkloadSeries), members: map[string]map[policy.WorkloadKey]replicaCounts{}}
}

func (s *workloadSeries) set(member string, key policy.WorkloadKey, counts replicaCounts) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.members[member] == nil {
		s.members[member] = map[policy.WorkloadKey]replicaCounts{}
	}
	s.members[member][key] = counts
}

func (s *workloadSeries) forget(member string, key policy.WorkloadKey) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.members[member], key)
}

func (s *workloadSeries) forgetMember(member string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.members, member)
}

// Describe implements prometheus.Collector.
func (s *workloadSeries) Describe(into chan<- *prometheus.Desc) {
	into <- workloadReplicas
	into <- workloadFloorMissing
	into <- workloadMisplaced
}

// Collect implements prometheus.Collector.
func (s *workloadSeries) Collect(into chan<- prometheus.Metric) {
	s.mu.Lock()
	members := make(map[string]map[policy.WorkloadKey]replicaCounts, len(s.members))
	for member, workloads := range s.members {
		members[member] = maps.Clone(workloads)
	}
	s.mu.Unlock()
	for member, workloads := range members {
		var rest replicaCounts
		own := ownSeries(workloads, s.limit)
		for _, key := range own {
			sendReplicas(into, member, key, workloads[key])
			delete(workloads, key)
		}
		if len(workloads) == 0 {
			continue
		}
		for _, counts := range workloads {
			rest.others(counts)
		}
		sendReplicas(into, member, policy.WorkloadKey{Kind: otherWorkloads, NamespacedName: types.NamespacedName{Namespace: otherWorkloads, Name: otherWorkloads}}, rest)
	}
}

// ownSeries picks the workloads that have series of their own: the namespaces choose in turn, so that a tenant with many takes
// those of no other tenant. The choice follows from the workloads alone, so a restart changes no series.
func ownSeries(workloads map[policy.WorkloadKey]replicaCounts, limit int) []policy.WorkloadKey {
	keys := slices.SortedFunc(maps.Keys(workloads), policy.WorkloadKey.Compare)
	if len(keys) <= limit {
		return keys
	}
	ranks, inNamespace := make(map[policy.WorkloadKey]int, len(keys)), map[string]int{}
	for _, key := range keys {
		ranks[key] = inNamespace[key.Namespace]
		inNamespace[key.Namespace]++
	}
	slices.SortStableFunc(keys, func(a, b policy.WorkloadKey) int { return cmp.Compare(ranks[a], ranks[b]) })
	return keys[:limit]
}

func sendReplicas(into chan<- prometheus.Metric, member string, key policy.WorkloadKey, counts replicaCounts) {
	for _, series := range []struct {
		capacity capacity.Type
		count    string
		value    int
	}{
		{capacity.Spot, "wanted", counts.spotWanted}, {capacity.Spot, "actual", counts.spotActual},
		{capacity.OnDemand, "wanted", counts.onDemandWanted}, {capacity.OnDemand, "actual", counts.onDemandActual},
	} {
		into <- prometheus.MustNewConstMetric(workloadReplicas, prometheus.GaugeValue, float64(series.value),
			member, key.Namespace, key.Kind, key.Name, string(series.capacity), series.count)
	}
	into <- prometheus.MustNewConstMetric(workloadFloorMissing, prometheus.GaugeValue, float64(counts.floorMissing), member, key.Namespace, key.Kind, key.Name)
	into <- prometheus.MustNewConstMetric(workloadMisplaced, prometheus.GaugeValue, float64(counts.misplaced), member, key.Namespace, key.Kind, key.Name)
}
