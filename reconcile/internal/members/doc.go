// Package members knows the cluster behind each member's name, for what looks across controllers and members: dependencies,
// streams of changes.
//
//	instances.go  which cluster has a member's name now, and who is called when that changes
//	presence.go   whether a member has a kind cached, and how to read past its cache
package members
