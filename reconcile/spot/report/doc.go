// Package report is what is shown of workloads after they were planned: to the API, as metrics and as Events.
//
// It decides nothing: plans are made in package plan, and only [Suppose] asks for one, whose answer nobody carries out. It calls no API
// and does not ask for the time. It does not count as pure, because its metrics are Prometheus collectors.
//
//   - view.go: what a plan says of a workload and of its pods ([Workload], [Pod], [Of]);
//   - journal.go: the last plan and the last moves of each workload, in memory ([Journal], [Planned], [Move]);
//   - whatif.go: what the plan would be under another policy ([Suppose], [Hypothesis], [WhatIf]);
//   - announcements.go: the Events that a change between two plans is worth ([Announcements]);
//   - metrics.go, series.go: metrics of placement, and the bounded series of workloads ([Metrics]).
//
// It imports capacity, policy and plan.
package report
