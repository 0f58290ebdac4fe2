package reconcile

// doing is what applying an object did.
type doing string

const (
	doneNothing doing = "Unchanged"   // it was as wanted
	doneNew     doing = "Created"     // it did not exist
	doneChange  doing = "Changed"     // something else is wanted of it than before
	doneRepair  doing = "Repaired"    // somebody had changed a field of ours
	doneLater   doing = "Terminating" // it is being deleted, and nothing was written
)

// applyOptions are how one object is applied.
type applyOptions struct {
	unowned bool     // without an owner reference
	adopt   bool     // also over an object that has no controller
	yield   bool     // a field that another manager has with another value is an error
	leave   []string // paths of fields that are another manager's from now on
}

// applyOption sets one of them.
type applyOption func(*applyOptions)
