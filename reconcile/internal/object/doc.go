// Package object has the small questions about Kubernetes objects that all of the framework asks: how an object and its kind are
// named, who controls it, whether an event changed it, and how an empty one is made.
//
// All of it is in object.go; log.go names an object in what is logged.
package object
