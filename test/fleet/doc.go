// Package fleet puts hub replicas and members together on the testbed of test/kube, for the integration specs and the
// benchmark.
//
// A Fleet is a hub cluster and members with spot and on-demand nodes, each member behind a kube.Proxy that can be made
// to misbehave. Members are registered as a user would: a service account with no right but those that the hub asks for,
// a webhook configuration, and a registration Secret. What the hub then does in a member is found in the audit log under
// HubUser.
//
// What is measured here is read from the API servers (their objects, their audit logs, their watches) and never from the
// hub's own word. The hub's API is only asked when it has seen something, so that nobody has to wait for a fixed time.
//
// Where to look: fleet.go starts and stops it all, register.go lets a member join, replica.go writes a hub's
// configuration and process.go runs it (logbuffer.go keeps the log of one that runs inside a test), balancer.go stands before the replicas as a Service does, api.go asks the hub,
// workload.go and pods.go make workloads and see where their pods are, history.go remembers what happened to pods in the
// API server's own order, churn.go makes a bad time and judges it, placement.go gives the right to scale, hook.go adds other admission webhooks, metrics.go reads the
// hub's metrics.
package fleet
