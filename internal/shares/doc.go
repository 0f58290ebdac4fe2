// Package shares bounds what each of several callers may take, so that there is always some for the others: [Places] (places.go) are a
// number of places, [Bound] (inflight.go) bounds the calls that an HTTP server has in flight, [Paces] (paces.go) are rates, and [Strangers]
// (strangers.go) pace what a server reads of connections, and sends on them, before it knows whose they are. [Address] (address.go) says which
// connections are of one caller.
package shares
