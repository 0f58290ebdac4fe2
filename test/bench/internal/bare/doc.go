// Package bare has the least that can do what the hub does, each in a process of its own, to compare the hub with: handler.go answers admission
// calls, watch.go receives events.
package bare
