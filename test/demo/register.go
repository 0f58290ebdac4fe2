package main

import (
	"context"
	"fmt"
)

// registerLine is how a member joins.
func registerLine(member string) string {
	return fmt.Sprintf("%s register %s --fleet --kubeconfig %s --hub-kubeconfig %s", cliBinary, member, kubeconfig(member), kubeconfig("hub"))
}

// unregisterLine is how it leaves.
func unregisterLine(member string) string {
	return fmt.Sprintf("%s unregister %s --kubeconfig %s --hub-kubeconfig %s", cliBinary, member, kubeconfig(member), kubeconfig("hub"))
}

// register lets a member join, and shows how the CLI does it: of the first member all that it says, which is the same for
// the others.
func (d *demo) register(ctx context.Context, member string) error {
	line := registerLine(member)
	var said string
	err := d.screen.step("registering "+member, func() (string, error) {
		stdout, stderr, err := run(ctx, line)
		said = stdout + stderr
		return member + " is registered", err
	})
	if err != nil {
		return err
	}
	d.screen.quote("$ " + line)
	if member == memberNames[0] {
		d.screen.quote(said)
	}
	return nil
}
