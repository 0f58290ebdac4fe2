// Command fleet-hub is a hub with controllers of somebody else: everything that plimsoll-hub does, WebApps included, ConfigMaps that
// are mirrored into other namespaces of every member, and Bundles, a kind of its own. It is the example of docs/write-a-reconciler.md,
// and a module of its own, as its users' would be.
package main

import (
	"github.com/plimsoll-dev/plimsoll/hub"
	"github.com/plimsoll-dev/plimsoll/reconcile/webapp"

	"example.com/fleet-hub/bundle"
	"example.com/fleet-hub/mirror"
)

func main() {
	hub.Main(hub.WithController(webapp.Module()), hub.WithController(mirror.Module()), hub.WithController(bundle.Module()))
}
