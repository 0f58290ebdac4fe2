// Package plantest has what tests of plans share: workloads that were observed, and what is read off a plan.
//
//   - plantest.go: all of it.
package plantest
