// Package apply writes a controller's objects by server-side apply, and only when the cached object differs from what is wanted.
//
//	apply.go       one call: compare, repair or change, write, show the answer; and delete
//	configuration.go what is wanted of an object, and its hash; leave.go: fields that are handed to others
//	options.go     how an object is applied, and what came of it
//	create.go      objects that the cache does not have
//	fields.go      which of the wanted fields differ; owners.go: who owns a field
//	memory.go      which version of an object has which configuration
//	contest.go     a field that another manager changes back again and again
//	mergepatch.go  the JSON merge patch that is left to do
//
// It knows members as clients, and nothing of controllers, queues and requests.
package apply
