// Package caching is what caches of members need beside controller-runtime's: trim.go leaves out of objects what nobody reads, parts.go
// makes one cache of several namespaces, client.go refuses the updates that would erase what was left out, calls.go has large answers be
// decoded one at a time; names.go names kinds.
//
// It asks no member anything.
package caching
