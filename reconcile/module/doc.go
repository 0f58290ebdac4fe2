// Package module is the door through which reconcilers come into a hub: those of this repository and those of others alike.
//
// A [Module] names what a hub has to know to run somebody's controllers in every member: the Go types of their kinds, the
// rights that they need there, the kinds about which members ask the hub, and a function that registers the controllers.
// The hub gives them a [Host] to register with; ownership, the API, metrics and requeue then work for them as for its own.
//
// It never runs anything itself, and knows neither the hub nor the webhook: these read it.
//
// Where to look: module.go for what a module is, resource.go for kinds that members ask about, definition.go for the
// CustomResourceDefinitions that the hub keeps current.
package module
