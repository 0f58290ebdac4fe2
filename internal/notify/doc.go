// Package notify wakes goroutines when something has changed, and never waits for them: a [Wake] (wake.go) wakes one that looks at
// everything again, however often it was woken while it was busy; [Subscribers] (subscribers.go) hear the newest event of each thing.
package notify
