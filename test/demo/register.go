package main

import (
	"context"
	"fmt"
)

// registerLine is how a member joins.
func registerLine(member string) string {
	return fmt.Sprintf("%s register %s --kubeconfig %s --hub-kubeconfig %s", cliBinary, member, kubeconfig(member), kubeconfig("hub"))
}

// unregisterLine is how it leaves.
func unregisterLine(member string) string {
	return fmt.Sprintf("%s unregister %s --kubeconfig %s --hub-kubeconfig %s", cliBinary, member, kubeconfig(member), kubeconfig("hub"))
}

// register lets a member join, and shows what the CLI says.
func (d *demo) register(ctx context.Context, member string) error {
	line := registerLine(member)
	var said string
	err := d.screen.step(line, func() (string, error) {
		stdout, stderr, err := run(ctx, line)
		said = stdout + stderr
		return line, err
	})
	if err == nil {
		d.screen.quote(said)
	}
	return err
}
