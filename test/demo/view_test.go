package main

import (
	"testing"

	. "github.com/onsi/gomega"
	"google.golang.org/protobuf/proto"

	plimsollv1 "github.com/plimsoll-dev/plimsoll/proto/plimsoll/v1"
)

// moving is a view of one member with one workload on its way.
func moving() view {
	return view{
		clusters: []*plimsollv1.Cluster{{
			Name: "eu", State: plimsollv1.ClusterState_CLUSTER_STATE_READY, KubernetesVersion: "v1.36.1",
			Workloads: &plimsollv1.WorkloadCounts{Managed: 1, SpotWanted: 6, SpotActual: 14, OnDemandWanted: 14, OnDemandActual: 6},
		}, {
			Name: "us", State: plimsollv1.ClusterState_CLUSTER_STATE_UNREACHABLE, Message: "it does not answer",
		}},
		workloads: []*plimsollv1.Workload{{
			Cluster: "eu", Namespace: "shop", Kind: "StatefulSet", Name: "web", State: plimsollv1.WorkloadState_WORKLOAD_STATE_MOVING,
			Placement: &plimsollv1.Placement{
				Replicas: 20, SpotWanted: 6, SpotActual: 14, OnDemandWanted: 14, OnDemandActual: 6,
				SpotPercentage: proto.Int32(30), MinOnDemand: proto.Int32(2), Reason: "moving 2 of 8 replicas",
			},
		}},
		unreachable: []*plimsollv1.UnreachableMember{{Member: "us", Reason: "no owner"}},
	}
}

func TestTheTableShowsWhereReplicasAreAndWhereTheyBelong(t *testing.T) {
	NewWithT(t).Expect(moving().lines(&screen{})).To(Equal([]string{
		"  CLUSTER  STATE        KUBERNETES  WORKLOADS  SPOT  ON-DEMAND",
		"  eu       Ready        v1.36.1     1          14/6  6/14",
		"  us       Unreachable              -          -     -          it does not answer",
		"",
		"  CLUSTER  WORKLOAD           POLICY         REPLICAS                        SPOT  ON-DEMAND  STATE",
		"  eu       web (StatefulSet)  30 %, floor 2  20        ██████░░░░░░░░░░░░░░  14/6  6/14       Moving  moving 2 of 8 replicas",
		"  no answer about us: no owner",
		"",
		"  █ on-demand   ░ spot   numbers: actual/wanted",
	}))
}

func TestABarShowsEveryKindThatIsThere(t *testing.T) {
	for _, test := range []struct {
		name                     string
		spot, onDemand, replicas int32
		want                     string
	}{
		{"none", 0, 0, 0, ""},
		{"as many characters as replicas", 2, 1, 3, "█░░"},
		{"many replicas", 70, 30, 100, "██████░░░░░░░░░░░░░░"},
		{"one of very many", 1000, 1, 1001, "█░░░░░░░░░░░░░░░░░░░"},
		{"some are missing", 1, 1, 4, "█░"},
		{"more than wanted", 3, 2, 4, "██░░░"},
	} {
		t.Run(test.name, func(t *testing.T) {
			bar := bar(&plimsollv1.Placement{SpotActual: test.spot, OnDemandActual: test.onDemand, Replicas: test.replicas})
			drawn := ""
			for _, part := range bar {
				drawn += part.text
			}
			NewWithT(t).Expect(drawn).To(Equal(test.want))
		})
	}
}

func TestOnlyWhatChangedIsToldWhereNothingCanBeDrawnOver(t *testing.T) {
	g := NewWithT(t)
	before, now := moving(), moving()
	g.Expect(changes(before, now)).To(BeEmpty())
	now.workloads[0].Placement.SpotActual = 12
	now.workloads[0].Placement.OnDemandActual = 8
	g.Expect(changes(before, now)).To(Equal([]string{"eu shop/web  spot 12/6  on-demand 8/14  Moving  moving 2 of 8 replicas"}))
}

func TestThePolicyIsToldInAFewWords(t *testing.T) {
	g := NewWithT(t)
	g.Expect(policy(&plimsollv1.Placement{})).To(Equal("none"))
	g.Expect(policy(&plimsollv1.Placement{MinOnDemand: proto.Int32(1)})).To(Equal("floor 1"))
	g.Expect(policy(&plimsollv1.Placement{SpotPercentage: proto.Int32(0)})).To(Equal("0 %"))
	g.Expect(policy(&plimsollv1.Placement{Problems: []*plimsollv1.PolicyProblem{{Key: "k"}}})).To(Equal("invalid"))
}
