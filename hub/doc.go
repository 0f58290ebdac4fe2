// Package hub is the composition root: it reads the configuration and puts members, queues, spot placement, webhook, API
// and the servers of one replica together.
//
// Start with hub.go (what is built, and in which order it starts and stops); config.go is the configuration with every
// default; ownership.go says which replica may act on a member, tenure.go until when; peers.go is how replicas talk.
//
// It never decides anything about a workload, and never writes to a member. It is the only package that reads the
// environment.
package hub
