// Package connection connects a command to the hub's API as its flags and the environment say: to which address, with whose token or
// certificate, and whose certificate is trusted there. What nothing says, package hubapi finds in the hub cluster.
//
// Where to look: connection.go for the flags and the connection, token.go and certificate.go for who calls, hubflags.go for the hub cluster in
// the kubeconfig, hint.go for errors that come with something to try.
package connection
