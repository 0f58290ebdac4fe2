package enroll

import (
	"fmt"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// Sides of a registration.
const (
	SideMember = "member"
	SideHub    = "hub"
)

// Cluster is one side of a registration, as the person who registers reaches it.
type Cluster struct {
	side    string
	context string
	config  *rest.Config
	typed   kubernetes.Interface
	objects dynamic.Interface
}

// Connect makes clients for one side; it does not talk to the cluster yet.
func Connect(side string, from *Context) (*Cluster, error) {
	c := &Cluster{side: side, context: from.Name, config: from.Config}
	var err error
	if c.typed, err = kubernetes.NewForConfig(from.Config); err == nil {
		c.objects, err = dynamic.NewForConfig(from.Config)
	}
	if err != nil {
		return nil, c.failed("create a client", err)
	}
	return c, nil
}

// failed says which cluster an error is about.
func (c *Cluster) failed(doing string, err error) error {
	return fmt.Errorf("%s (context %q): %s: %w", c.side, c.context, doing, err)
}

// Change is one line of what was done.
type Change struct {
	// Side is member or hub; Object is the kind and name, as in secret/plimsoll-system/prod-eu.
	Side, Object string
	// Action is created, updated, unchanged, kept, deleted, absent or skipped.
	Action string
	// Note says why, where that is not plain.
	Note string
	// Version is the resourceVersion of an object that was applied; "" for others.
	Version string
}

// Actions of a [Change].
const (
	Created   = "created"
	Updated   = "updated"
	Unchanged = "unchanged"
	Kept      = "kept" // it is somebody else's
	Deleted   = "deleted"
	Absent    = "absent"
	Skipped   = "skipped" // the cluster does not know its kind
)
