// Package calls is what all calls of members' API servers have in common, whatever they are about: bounds.go how large they may be and
// what is said of them, pieces.go how large ones are read, refusals.go how soon they are refused.
package calls
