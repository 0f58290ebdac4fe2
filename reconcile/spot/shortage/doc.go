// Package shortage finds out for which pods a capacity type has insufficient capacity, and when it has room again. It is pure: it
// calls no API and asks for no time.
//
//   - shortage.go: what is observed, decided and to be done ([Pod], [Decision], [Probe], [Plan]);
//   - tracker.go: what is known about one capacity type of a member ([Tracker]);
//   - trackers.go: both types of a member, for concurrent use ([Trackers]);
//   - limits.go: how many decisions there are, for each namespace and for all;
//   - patience.go: how long pods are given for nodes that are on their way ([StartTimes]);
//   - probe.go, probes.go: the pods that find out whether there is room again, and what is to be done about them ([ProbeOf]);
//   - relapse.go, tried.go: what is made of probes that found room where replicas found none.
package shortage
