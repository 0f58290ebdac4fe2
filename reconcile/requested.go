package reconcile

// Annotations by which a person steers the reconciles of one object, of any kind that a controller reconciles.
const (
	// AnnotationRequestedAt asks for a reconcile now, before everything that nobody ordered, whenever its value changes. Any
	// value will do; the time is customary. When the reconcile has ended, however it ended, the ledger shows the value, and a
	// [StatusObject] in status.lastHandledRequest as well.
	AnnotationRequestedAt = "plimsoll.dev/requested-at"
	// AnnotationPaused with the value "true" keeps the object from being reconciled and cleaned up, until it is removed: then
	// it is looked at at once. The ledger says Paused, and a StatusObject has the condition Paused. Values other than "true"
	// and "false" are told in a Warning event, and pause nothing. Controllers that were built with ReconcilePaused are called
	// all the same, and know themselves what a pause stops.
	AnnotationPaused = "plimsoll.dev/paused"
)
