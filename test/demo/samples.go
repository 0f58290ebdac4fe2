package main

import "embed"

// manifests are what is applied to each member, one file for each.
//
//go:embed workloads
var manifests embed.FS

// namespace is where all samples are.
const namespace = "shop"

// memberNames are the clusters that join the hub; each has a manifest.
var memberNames = []string{"prod-eu", "prod-us", "staging"}

// sample is what the checks expect of a workload in the manifests; a test compares the two.
type sample struct {
	member, kind, name string
	replicas           int
	// percent and floor are the policy in force, wherever it is written.
	percent, floor int
	// broken: an annotation is invalid, so that every replica belongs on-demand.
	broken bool
}

// samples are all of them, in the order of the API's lists.
var samples = []sample{
	{member: "prod-eu", kind: "Deployment", name: "checkout", replicas: 10, percent: 50, floor: 6},
	{member: "prod-eu", kind: "Deployment", name: "web", replicas: 20, percent: 70, floor: 2},
	{member: "prod-eu", kind: "StatefulSet", name: "sessions", replicas: 5, percent: 40, floor: 2},
	{member: "prod-us", kind: "Deployment", name: "search", replicas: 8, percent: 100, floor: 1},
	{member: "prod-us", kind: "Deployment", name: "web", replicas: 30, percent: 70, floor: 2},
	{member: "prod-us", kind: "StatefulSet", name: "cache", replicas: 6, percent: 50, floor: 1},
	{member: "staging", kind: "Deployment", name: "reports", replicas: 3, broken: true},
	{member: "staging", kind: "Deployment", name: "web", replicas: 6, percent: 90},
	{member: "staging", kind: "Deployment", name: "worker", replicas: 12, percent: 100},
}

// spotWanted is how many of n replicas of the sample ought to be on spot capacity.
func (s sample) spotWanted(n int) int {
	if s.broken {
		return 0
	}
	return wantedSpot(n, s.percent, s.floor)
}

// String names the sample for people.
func (s sample) String() string { return s.member + " " + namespace + "/" + s.name }

// sampleOf finds a sample by member and name.
func sampleOf(member, name string) sample {
	for _, s := range samples {
		if s.member == member && s.name == name {
			return s
		}
	}
	panic("no sample " + member + " " + name) // a slip in this program, not in what it is given
}
