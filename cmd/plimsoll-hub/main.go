// Command plimsoll-hub runs one replica of the hub, with WebApps. Every key and flag of it is in docs/configuration.md.
package main

import (
	"github.com/plimsoll-dev/plimsoll/hub"
	"github.com/plimsoll-dev/plimsoll/reconcile/webapp"
)

func main() { hub.Main(hub.WithController(webapp.Module())) }
