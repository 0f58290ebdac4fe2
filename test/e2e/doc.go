// Package e2e runs the hub's shipped image against control planes that each are in a container and a network of their own, so
// that killing, pausing and cutting off are what they are in a data centre. All the while sizes and policies change and reconciles
// are ordered in every member. After each fault the recorded history is judged: who wrote when, by the members' audit logs and
// the Lease; floors and budgets, by watches of pods and budgets; that evictions name their pods by UID, by the audit logs; and
// that nothing acknowledged is lost.
//
// Where a Docker engine answers, `make test-containers` builds the images and runs the specs; without one they are skipped, unless
// REQUIRE_DOCKER=1. testcontainers-go makes, starts and removes containers; its Docker client does what it has no call for: kill,
// pause, take out of a network. Nothing is pulled: the images are built from static binaries on an empty base, and the reaper of
// testcontainers is off, since leftovers.go does its work. Replicas run as the chart's Deployment says and with its ConfigMap:
// chart/ holds values and what the chart makes of them, of which a test in test/deploy sees to it that it is so. Only what
// Kubernetes gives a pod and an engine does not is different: see Release.request.
//
// Where to look: e2e_test.go for the faults; site.go for what there is, clusters.go and hubs.go for its parts, workload.go for what
// is placed; load.go for the load and its orders; history.go for what is recorded, judge.go for what must not be in it; docker.go
// and leftovers.go for containers and networks; controlplane/ for the first process of a control plane's container.
package e2e
