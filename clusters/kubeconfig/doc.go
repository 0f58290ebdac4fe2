// Package kubeconfig decides what of a kubeconfig the hub uses, and builds the transport that carries its credentials.
//
// Vetting does no I/O. It never runs a program, reads a file or accepts an address that the configuration does not allow, and
// no error quotes anything of a kubeconfig but IP addresses.
//
// Where to look:
//
//   - vet.go: [Vet] and its rules for each field; rules.go: [Rules], which the hub's configuration sets; refused.go: the errors.
//   - wire.go: the transport of a vetted kubeconfig; dial.go (dial_linux.go): where it may connect, checked when it connects.
//   - token.go: the service account token in a kubeconfig, and how it is replaced.
package kubeconfig
