// Package sample holds kubeconfigs, networks and key pairs for the tests of clusters and the packages below it: sample.go. answers.go: what
// members answer.
package sample
