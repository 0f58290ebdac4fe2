package main

import (
	"context"
	"math/rand/v2"
	"time"
)

// linkFaults are what happens between a replica and others, in one direction.
var linkFaults = []fault{
	{"requests to hub lost", hubLink(disturbance{NoRequests: true})},
	{"answers of hub lost", hubLink(disturbance{NoAnswers: true})},
	{"hub slow", hubLink(disturbance{Slow: 1500 * time.Millisecond})},
	{"hub stale", hubLink(disturbance{Stale: true})},
	{"requests to member lost", memberLink(disturbance{NoRequests: true})},
	{"answers of member lost", memberLink(disturbance{NoAnswers: true})},
	{"member slow", memberLink(disturbance{Slow: 1500 * time.Millisecond})},
	{"member stale", memberLink(disturbance{Stale: true})},
	{"calls of members lost", callsLost},
	{"calls of replicas lost", peersLost},
}

// blinding are the faults after which a replica may not know what others have done in a member.
var blinding = map[string]bool{
	"frozen": true, "terminated while frozen": true,
	"requests to member lost": true, "answers of member lost": true, "member slow": true, "member stale": true,
}

func hubLink(wrong disturbance) func(context.Context, *site, *replica, *rand.Rand, time.Duration) error {
	return func(ctx context.Context, s *site, on *replica, _ *rand.Rand, hold time.Duration) error {
		return disturb(ctx, s, link{on.name, hubCluster}, wrong, hold)
	}
}

func memberLink(wrong disturbance) func(context.Context, *site, *replica, *rand.Rand, time.Duration) error {
	return func(ctx context.Context, s *site, on *replica, random *rand.Rand, hold time.Duration) error {
		member := s.fleet.Members[random.IntN(len(s.fleet.Members))]
		return disturb(ctx, s, link{on.name, member.Name}, wrong, hold)
	}
}

func disturb(ctx context.Context, s *site, which link, wrong disturbance, hold time.Duration) error {
	s.links.set(which, wrong)
	wait(ctx, hold+time.Second)
	s.links.set(which, disturbance{})
	wait(ctx, time.Second)
	return nil
}

// callsLost: what members' API servers send to a replica does not arrive.
func callsLost(ctx context.Context, s *site, on *replica, _ *rand.Rand, hold time.Duration) error {
	s.fleet.Balancer.Hold(on.hub.Webhook)
	wait(ctx, hold)
	s.fleet.Balancer.Release(on.hub.Webhook)
	return nil
}

// peersLost: what other replicas forward to a replica does not arrive.
func peersLost(ctx context.Context, _ *site, on *replica, _ *rand.Rand, hold time.Duration) error {
	on.peer.Hold(on.hub.Peer)
	wait(ctx, hold)
	on.peer.Release(on.hub.Peer)
	return nil
}
