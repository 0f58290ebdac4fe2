// Package kube starts real Kubernetes control planes with simulated nodes, for tests, benchmarks and the demo.
//
// A Cluster is etcd, kube-apiserver, kube-controller-manager, kube-scheduler and kwok, each a process of its own on
// loopback. The API server, the scheduler and the controllers are the real ones; kwok plays the kubelets, so pods run
// and stop at once and cost nothing. The binaries are built from Go modules by `make testbed` (see controlplane/).
//
// What a test can do with a cluster: add, taint and remove spot and on-demand nodes (nodes.go), stop, hang or kill
// any part (faults.go), put a Proxy in front of the API server that delays, hangs, cuts or refuses (proxy.go), and
// count what really reached the API server from its audit log (audit.go).
//
// Nodes that come and go by themselves: the real Karpenter as one more process (karpenter.go, nodepool.go), and a scripted
// node group that does as Cluster Autoscaler and a cloud do (nodegroup.go), with the labels of each provider (provider.go).
//
// What it never does: touch a cluster it did not start, use a port beyond loopback, or leave something behind. The
// processes die with the process that started them even if that one is killed (package proc), and what it left on
// disk is swept at the next Start (leftovers.go).
//
// Where to look: options.go for what can be asked for, start.go for the order of things, components.go for every
// component's flags, testing.go for use from a test, credentials.go for users, tokens and kubeconfigs.
package kube
