// Command demo shows Plimsoll at work: a hub cluster and three members on real Kubernetes API servers with simulated
// nodes, and the hub and the CLI as the binaries that a user runs. `make demo` runs it until Ctrl-C; `make demo-check`
// does the same, checks what it sees from outside of the hub, and exits.
//
// Everything that the printed lines need is in build/demo (kubeconfigs, CA, token) and goes when the demo does; the hub's
// log stays there. It never touches a cluster, a port or a folder that it did not start, take or make itself.
//
// Where to look:
//
//	main.go       flags, signals and the order of things; place.go is the folder build/demo and who may use it
//	setup.go      the steps until the replicas are where they belong: fleet.go the clusters, hub.go and hub.yaml the hub,
//	              rbac.yaml what hub and user may do, register.go the CLI, workloads/ what is applied
//	lines.go      the lines to paste
//	page.go       where the web page is, and its checks
//	live.go       the table, and the policy change that it shows; view.go and table.go what stands in it
//	overfleet.go  a workload over the fleet, of overfleet/: a drought and a loss, by the commands of docs/fleet.md
//	check.go      runs the checks of checks*.go and counts
//	observe.go    what really is in a member, asked from its API server; formula.go what ought to be
//	api.go        the hub's API; shell.go runs the printed lines; processes.go finds processes that are left
//	screen.go     progress, colours, and what a terminal can do
package main
