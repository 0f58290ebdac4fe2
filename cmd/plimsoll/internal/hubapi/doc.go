// Package hubapi finds the hub's API through a person's kubeconfig, so that a command line needs no address, no certificate, and no token.
//
// Where to look: find.go for the address and whom to trust there, forward.go for the way to a hub that publishes no address, token.go for the
// token of a call. It reads from the hub cluster with the rights of the person, writes nothing there but requests for tokens, and keeps nothing
// on disk.
package hubapi
