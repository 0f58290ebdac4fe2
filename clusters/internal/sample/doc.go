// Package sample holds kubeconfigs, networks and key pairs for the tests of clusters and clusters/kubeconfig: sample.go.
package sample
