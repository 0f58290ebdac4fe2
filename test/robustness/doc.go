// Command robustness runs a hub of two and three replicas over real API servers while processes, connections, the Lease and the
// hub cluster's store are broken under it, and judges afterwards, from recorded histories, whether what the hub promises was
// kept. It works like etcd's robustness tests. `make robustness` runs it.
//
// Faults: site.go puts replicas (replica.go) and proxies together; faults.go chooses faults by the seed, in two lanes that go on
// beside each other; faults_process.go, faults_link.go and faults_lease.go do them. links.go is what the proxies do to the
// requests of one replica, connections.go how they know whose requests they are. skewed/ builds a hub with a wrong clock.
//
// Load: load.go churns, scales, rolls out and changes policies, orders.go orders reconciles and follows them.
//
// Judgement: record.go and the API servers' audit logs hold what happened, slowness.go how slow the machine was. The judges are
// functions of such histories and do nothing else: judge_writes.go (no two replicas write), judge_floors.go, judge_budgets.go and
// judge_orders.go (a sequential model, checked by porcupine). outcome.go puts them together; figures.go writes build/bench.json.
//
// docs/robustness.md says what was found.
package main
