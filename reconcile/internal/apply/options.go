package apply

// Outcome is what applying an object did.
type Outcome string

// The outcomes.
const (
	Unchanged   Outcome = "Unchanged"   // it was as wanted
	Created     Outcome = "Created"     // it did not exist
	Changed     Outcome = "Changed"     // something else is wanted of it than before
	Repaired    Outcome = "Repaired"    // somebody had changed a field of ours
	Terminating Outcome = "Terminating" // it is being deleted, and nothing was written
)

// eventRepaired is the reason of an Event about the object whose reconciler applies others.
const eventRepaired = "Repaired" // The hub restored fields of an object that it applies, which another client had changed; the message names them.

// Options are how one object is applied.
type Options struct {
	Unowned bool     // without an owner reference
	Adopt   bool     // also over an object that has no controller
	Yield   bool     // a field that another manager has with another value is an error
	Leave   []string // paths of fields that are another manager's from now on
}

// Option sets one of them.
type Option func(*Options)
