// Package spottest has what tests of spot placement share and what knows policies and capacity types only.
//
//   - spottest.go: all of it.
package spottest
