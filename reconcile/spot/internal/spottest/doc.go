// Package spottest has what tests of spot placement share and what knows policies and capacity types only.
//
//   - spottest.go: labels, policies, keys and pods;
//   - series.go: the values of a metric.
package spottest
