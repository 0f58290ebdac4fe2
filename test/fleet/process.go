package fleet

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/plimsoll-dev/plimsoll/test/kube"
	"github.com/plimsoll-dev/plimsoll/test/kube/proc"
)

// A Process is a replica that runs as a process of its own: the binary that users run.
type Process struct {
	*Replica
	*proc.Process
}

// HubBinary is <repo>/build/bin/plimsoll-hub; an error says what to run when it is missing.
func HubBinary() (string, error) {
	testbed, err := kube.BinDir()
	if err != nil {
		return "", err
	}
	path := filepath.Join(filepath.Dir(filepath.Dir(testbed)), "bin", "plimsoll-hub")
	if _, err := os.Stat(path); err != nil {
		return "", errors.New("the hub's binary is missing: run `make build` in the repository")
	}
	return path, nil
}

// StartProcess runs the replica and waits until it is ready.
func (r *Replica) StartProcess(ctx context.Context) (*Process, error) {
	binary, err := HubBinary()
	if err != nil {
		return nil, err
	}
	p, err := r.Launch(binary)
	if err != nil {
		return nil, err
	}
	if err := p.AwaitReady(ctx, proc.OK(nil, r.readyURL())); err != nil {
		return nil, errors.Join(err, p.Kill())
	}
	return p, nil
}

// Launch runs the replica by a binary, with more in its environment, and does not wait for anything.
func (r *Replica) Launch(binary string, environment ...string) (*Process, error) {
	p, err := proc.Start(proc.Command{
		Name: "hub " + r.Name, Program: binary, Args: []string{"--config", r.ConfigFile}, Log: r.LogFile,
		Env: append([]string{"HOME=" + filepath.Dir(r.ConfigFile), "PATH=" + os.Getenv("PATH")}, environment...),
	})
	if err != nil {
		return nil, err
	}
	return &Process{Replica: r, Process: p}, nil
}

// Ready reports whether /readyz says so.
func (r *Replica) Ready(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	return proc.OK(nil, r.readyURL())(ctx) == nil
}

func (r *Replica) readyURL() string { return "http://" + r.Probes + "/readyz" }

// BuildCLI builds the command plimsoll into a file. root is the repository's folder.
func BuildCLI(ctx context.Context, root, output string) error {
	build := exec.CommandContext(ctx, "go", "build", "-o", output, "./cmd/plimsoll")
	build.Dir = root
	if said, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build the CLI: %w: %s", err, bytes.TrimSpace(said))
	}
	return nil
}
