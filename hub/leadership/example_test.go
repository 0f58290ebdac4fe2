package leadership_test

import (
	"context"
	"fmt"

	"k8s.io/client-go/rest"

	"github.com/plimsoll-dev/plimsoll/clusters"
	"github.com/plimsoll-dev/plimsoll/hub/leadership"
	"github.com/plimsoll-dev/plimsoll/reconcile"
)

// Of two replicas of a program one acts. The other keeps its caches and its queue filled, and takes over without a list.
func ExampleNew() {
	run := func(ctx context.Context, hub *rest.Config, runtime *reconcile.Runtime) error {
		lease, err := leadership.New(hub, leadership.Options{Namespace: "tools", Name: "certificates"})
		if err != nil {
			return err
		}
		var _ clusters.Fence = lease // for clusters.Options: no write leaves a replica that does not act
		lease.Hold(runtime)
		return lease.Run(ctx)
	}
	_ = run // it needs a hub cluster

	_, err := leadership.New(&rest.Config{}, leadership.Options{})
	fmt.Println(err)
	// Output: leadership: the Lease has no namespace or no name
}

// The identity in a Lease says which replica acts, and where others reach it.
func ExampleNewIdentity() {
	one, other := leadership.NewIdentity("hub-0", "10.0.0.7:8444"), leadership.NewIdentity("hub-0", "10.0.0.7:8444")
	fmt.Println(leadership.NameOf(one), leadership.AddressOf(one))
	fmt.Println("a process that is started again is another:", one != other)
	// Output:
	// hub-0 10.0.0.7:8444
	// a process that is started again is another: true
}
