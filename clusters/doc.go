// Package clusters turns registration Secrets into members: vetted credentials, a transport that can be fenced, swapped
// and measured, warm caches, and a health that is always known.
//
// It knows nothing of reconcilers: it is told which kinds to cache ([Kind]) and hands members to a multicluster.Aware.
// It never runs a program, reads a file or dials an address that a kubeconfig names, unless the hub's configuration
// allows it, and nothing that one member does may delay another.
package clusters
