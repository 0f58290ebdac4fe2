package members

import (
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
)

// Presence reports whether a member has a kind cached, and gives the channel that is closed when it is gone. A plain cluster
// has every kind forever.
func Presence(cl cluster.Cluster, obj client.Object) (gone <-chan struct{}, ok bool) {
	switch c := cl.(type) {
	case interface {
		Watch(client.Object) (<-chan struct{}, bool)
	}:
		return c.Watch(obj)
	case interface{ Has(client.Object) bool }:
		return nil, c.Has(obj)
	}
	return nil, true
}

// IsClosed reports whether a channel is closed.
func IsClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// LiveReader reads past the cache: the member's own reader for that, if it has one.
func LiveReader(cl cluster.Cluster) client.Reader {
	if m, ok := cl.(interface{ Live() client.Reader }); ok {
		return m.Live()
	}
	return cl.GetAPIReader()
}
