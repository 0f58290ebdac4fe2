package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"
)

// run runs a line as a user's shell does, and returns what it prints to standard output and to standard error.
func run(ctx context.Context, line string) (stdout, stderr string, err error) {
	cmd := exec.CommandContext(ctx, "sh", "-c", line)
	cmd.Env = userEnvironment()
	var out, problems bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &problems
	// What the shell has started goes with it when the time is up.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return out.String(), problems.String(), fmt.Errorf("%s: %w: %s", line, err, strings.TrimSpace(out.String()+problems.String()))
	}
	return out.String(), problems.String(), nil
}

// userEnvironment is ours without what would lead a program to another cluster or change the hub's configuration.
func userEnvironment() []string {
	return slices.DeleteFunc(os.Environ(), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return name == "KUBECONFIG" || strings.HasPrefix(name, "PLIMSOLL_") || strings.HasPrefix(name, "POD_")
	})
}
