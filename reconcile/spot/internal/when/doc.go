// Package when compares times, of which the zero value is never.
//
//   - when.go: all of it ([Earlier], [Later]).
package when
