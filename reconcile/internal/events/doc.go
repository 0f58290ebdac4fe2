// Package events records Kubernetes Events about reconciled objects in their members.
//
//	recorder.go  an Event about one object
//	sink.go      sends those of one controller to one member: repetitions counted, bounded, in the background
//
// It knows a member as a client, and nothing of controllers and queues.
package events
