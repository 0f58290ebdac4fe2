// Package depend knows what objects wait for: from each dependency to the keys that wake when it changes, over all members.
//
//	dependency.go  a dependency, and what is said of one that is not met
//	index.go       who depends on what: edges are drawn by a run, and kept until a later run does without
//	entries.go     what is known about each target, and whom a change of it wakes
//	facts.go       what is kept of a target, never a value; live.go: asked without the index
//	watch.go       how facts stay current; list.go: and are found at first, page by page; retry.go: when a watch that ended is opened again
//	endpoint.go    endpoints outside the fleet
//	cycle.go       objects that wait for each other in a circle
//
// It wakes keys through a function, and knows nothing of controllers, queues and requests.
package depend
