// Command bench measures what the project promises, on real control planes, and writes build/bench.json.
//
// It starts a hub cluster and three members (test/fleet), runs the hub as users run it, a process of its own, and prints a
// table of figures beside their targets. Figures come from the API servers: from their audit logs, their watches and
// their objects. The exit status is 1 when a run broke or a target was missed, and
// the last line says which.
//
//	make bench
//	build/bin/bench -run burst,admission
//
// Where to look: main.go for the order of things, internal/figures for the entries and their targets, then a file for each run:
// inprocess.go for those that need no cluster (internal/inprocess), image.go, gitops.go, page.go (in Chromium), e2e.go (in containers),
// karpenter.go, burst.go, scale.go, memory.go, policy.go, churn.go, webapp.go, fleetrun.go (with fleetworkload.go), hostile.go (with
// hostile_site.go, hostile_apart.go and hostile_bare.go, the hub and the processes to compare with, hostile_judge.go and hostile_logins.go),
// events.go, failover.go, admission.go (with record.go, calls.go and load.go under it, and loadapart.go to send it from a process of its
// own). internal/bare has what a hub is compared with; internal/partner runs processes.
package main
