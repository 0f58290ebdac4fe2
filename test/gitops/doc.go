// Package gitops runs the fleet repository of deploy/gitops with the real Flux: its source-controller and
// kustomize-controller are built from their Go modules (flux/) and run as processes with a testbed's kubeconfig, and Git is
// served on loopback by git's own http-backend. Registration Secrets are sealed with sops and unsealed by Flux.
//
// What docs/gitops.md describes is done by its commands, as they are written.
//
// Where to look: repo.go for the repository, page.go for the commands of the page, flux.go for the controllers, site.go for
// the fleet that they work on, hub.go for the hub that runs from what they apply. The specs are in gitops_test.go; test/bench measures with the same.
package gitops
