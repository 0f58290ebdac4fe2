// Package tlstest calls servers as a member's API server does: over TLS, with what it was given to trust. It is for tests.
//
//   - tlstest.go: all of it ([Get], [Trusting]).
package tlstest
