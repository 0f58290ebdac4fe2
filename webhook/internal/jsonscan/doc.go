// Package jsonscan reads JSON once, front to back, and makes values only of what it is asked for. It does not know what it reads.
//
// scan.go is the [Scanner]; scan_walk.go goes into objects and arrays, scan_string.go reads text, scan_skip.go checks and skips
// the rest.
package jsonscan
