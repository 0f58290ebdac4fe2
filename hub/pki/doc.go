// Package pki makes and reads the certificates of the hub: those with which the webhook and the replicas show themselves, and the
// authorities that say whose certificates are treated as good.
//
// Where to look: ca.go for the hub's own CA in its Secret, leaf.go for the certificates that it issues, peer.go for mutual TLS between
// replicas; dir.go for certificates from a folder instead; authority.go for the authorities of those who call.
//
// It imports nothing of the hub's. It never overwrites a CA that is there, and no error of it quotes a key.
package pki
