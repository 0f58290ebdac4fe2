// Package retry says what a failure means for the next try: whether any try can help, and when it is.
//
//	terminal.go  errors that no retry can fix, and which answers of an API server are such
//	backoff.go   how long to wait after the n-th failure in a row
//
// It knows nothing of controllers and queues, and reads no clock.
package retry
