package connection

// HintedError is an error with something that the person can try.
type HintedError struct {
	// Cause is what went wrong; its text is that of the error.
	Cause error
	// Hint is printed after the error, as a sentence without a full stop.
	Hint string
}

// Error is the text of the cause, without the hint.
func (e *HintedError) Error() string { return e.Cause.Error() }

// Unwrap returns the cause.
func (e *HintedError) Unwrap() error { return e.Cause }
