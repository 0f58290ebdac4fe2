// Package admissiontest has what tests of admission share: what admission knows of a pod, and the pod that its patch makes.
//
//   - admissiontest.go: all of it.
package admissiontest
