package main

import (
	"fmt"
	"strconv"
	"strings"

	plimsollv1 "github.com/plimsoll-dev/plimsoll/proto/plimsoll/v1"
)

// barWidth is how many characters show the replicas of a workload.
const barWidth = 20

// view is what the table shows: the fleet as the hub shows it.
type view struct {
	clusters    []*plimsollv1.Cluster
	placements  []*plimsollv1.FleetPlacement
	workloads   []*plimsollv1.Workload
	unreachable []*plimsollv1.UnreachableMember
}

// lines are the tables of clusters and of workloads.
func (v view) lines(s *screen) []string {
	clusters := [][]cell{heads("CLUSTER", "STATE", "KUBERNETES", "WORKLOADS", "SPOT", "ON-DEMAND", "")}
	for _, c := range v.clusters {
		clusters = append(clusters, clusterRow(c))
	}
	workloads := [][]cell{heads("CLUSTER", "WORKLOAD", "POLICY", "REPLICAS", "", "SPOT", "ON-DEMAND", "STATE", "")}
	for _, w := range v.workloads {
		workloads = append(workloads, workloadRow(w))
	}
	lines := append(s.table(clusters), "")
	if len(v.placements) > 0 {
		placements := [][]cell{heads("OVER THE FLEET", "REPLICAS", "SPOT", "ON-DEMAND", "STATE", "")}
		for _, p := range v.placements {
			placements = append(placements, placementRow(p))
		}
		lines = append(append(lines, s.table(placements)...), "")
	}
	lines = append(lines, s.table(workloads)...)
	for _, u := range v.unreachable {
		lines = append(lines, "  "+s.paint(bad, fmt.Sprintf("no answer about %s: %s", u.GetMember(), u.GetReason())))
	}
	return append(lines, "", "  "+legend(s))
}

func legend(s *screen) string {
	return fmt.Sprintf("%s on-demand   %s spot   %s",
		s.paint(onDemandColour, "█"), s.paint(spotColour, "░"), s.paint(faint, "numbers: actual/wanted"))
}

func clusterRow(c *plimsollv1.Cluster) []cell {
	state, note := styled(word(c.GetState().String(), "CLUSTER_STATE_"), good), cell{}
	if c.GetState() != plimsollv1.ClusterState_CLUSTER_STATE_READY {
		state[0].how, note = notable, styled(c.GetMessage(), faint)
	}
	row := []cell{styled(c.GetName(), bold), state, styled(c.GetKubernetesVersion(), plain)}
	counts := c.GetWorkloads()
	if counts == nil {
		unknown := styled("-", faint)
		return append(row, unknown, unknown, unknown, note)
	}
	return append(row, styled(strconv.Itoa(int(counts.GetManaged())), plain),
		count(counts.GetSpotActual(), counts.GetSpotWanted()), count(counts.GetOnDemandActual(), counts.GetOnDemandWanted()), note)
}

// placementRow shows a workload over the fleet: how many serve, of how many that the plan leads to.
func placementRow(p *plimsollv1.FleetPlacement) []cell {
	state, note := styled(p.GetReason(), good), cell{}
	if p.GetReason() != "Placed" {
		state[0].how, note = notable, styled(p.GetMessage(), faint)
	}
	return []cell{
		styled(p.GetNamespace()+"/"+p.GetName(), bold), styled(strconv.Itoa(int(p.GetReady())), plain),
		count(p.GetSpot().GetReady(), p.GetSpot().GetWanted()), count(p.GetOnDemand().GetReady(), p.GetOnDemand().GetWanted()), state, note,
	}
}

func workloadRow(w *plimsollv1.Workload) []cell {
	p := w.GetPlacement()
	state, note := styled(word(w.GetState().String(), "WORKLOAD_STATE_"), good), cell{}
	if w.GetState() != plimsollv1.WorkloadState_WORKLOAD_STATE_CONVERGED {
		state[0].how, note = notable, styled(p.GetReason(), faint)
	}
	name := w.GetName()
	if w.GetKind() != "Deployment" {
		name += " (" + w.GetKind() + ")"
	}
	return []cell{
		styled(w.GetCluster(), bold), styled(name, plain), styled(policy(p), plain), styled(strconv.Itoa(int(p.GetReplicas())), plain),
		bar(p), count(p.GetSpotActual(), p.GetSpotWanted()), count(p.GetOnDemandActual(), p.GetOnDemandWanted()), state, note,
	}
}

// count is actual/wanted.
func count(actual, wanted int32) cell {
	how := plain
	if actual != wanted {
		how = notable
	}
	return styled(fmt.Sprintf("%d/%d", actual, wanted), how)
}

// policy is a workload's policy in a few words.
func policy(p *plimsollv1.Placement) string {
	if len(p.GetProblems()) > 0 {
		return "invalid"
	}
	var parts []string
	if p.SpotPercentage != nil {
		parts = append(parts, fmt.Sprintf("%d %%", p.GetSpotPercentage()))
	}
	if p.MinOnDemand != nil {
		parts = append(parts, fmt.Sprintf("floor %d", p.GetMinOnDemand()))
	}
	if len(parts) == 0 {
		return "none"
	}
	return strings.Join(parts, ", ")
}

// bar draws where the replicas are. Every kind that is there shows, however small its share.
func bar(p *plimsollv1.Placement) cell {
	steady, cheap := int(p.GetOnDemandActual()), int(p.GetSpotActual())
	total := max(steady+cheap, int(p.GetReplicas()))
	if total == 0 {
		return cell{}
	}
	width := min(total, barWidth)
	solid := share(steady, total, width)
	light := min(share(cheap, total, width), width-solid)
	return cell{{strings.Repeat("█", solid), onDemandColour}, {strings.Repeat("░", light), spotColour}}
}

// share is n of total in characters, rounded, and at least one when n is not 0.
func share(n, total, width int) int {
	if n == 0 {
		return 0
	}
	return max((2*n*width+total)/(2*total), 1)
}

// word turns an enumeration's value into a word: CLUSTER_STATE_READY into Ready.
func word(value, prefix string) string {
	text := strings.ToLower(strings.ReplaceAll(strings.TrimPrefix(value, prefix), "_", " "))
	if text == "" {
		return text
	}
	return strings.ToUpper(text[:1]) + text[1:]
}
