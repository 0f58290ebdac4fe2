// Package bodies lends memory for large bodies: answers of API servers, events of watches, and calls of webhooks that have more
// than a few hundred kilobytes.
//
// The hub's live heap is small, so a few such bodies that become garbage one after the other double what the process takes
// before the garbage collector runs. Bodies that follow each other share memory here instead.
//
//   - pool.go: the [Pool], and [Shared], which the whole process uses.
package bodies
