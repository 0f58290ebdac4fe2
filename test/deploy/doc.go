// Package deploy tests what deploy/ gives to users, the way they use it: the chart is rendered and installed with Helm's own
// packages, the bases with kustomize's, the alerts are run by Prometheus' own engine, and what comes out is applied to real
// API servers, where a hub runs from it.
//
// It is a module of its own, so that none of these reaches the product's go.mod. `make test-deploy` runs it.
//
// Where to look: render.go for how things are rendered, objects.go for how they are compared; render_test.go for the chart's
// configuration, values_test.go, strings_test.go, routes_test.go and pods_test.go for its values, kustomize_test.go for the bases,
// gitops_test.go, argocd_test.go and members_test.go for the fleet in Git, rbac_test.go for rights, alerts_test.go for alerts,
// cluster_test.go and hub_test.go for what happens in clusters.
package deploy
