// Package kinds is about the kinds of the hub's modules, whichever they are: it answers what members' API servers ask about their
// objects (conversions, defaults, and whether one may be stored), and keeps what members know of the kinds current.
//
// Where to look:
//
//	handler.go   the way of one call: validate.go for admission, convert.go for conversions (convert_read.go reads object by object);
//	             safe.go bounds what they may take, turns.go how many are answered at once
//	desired.go   what members should have about these kinds; install.go and keep.go bring it there
//
// It makes nothing in a member that a person has not made, and never writes a token to a log or an error.
package kinds
