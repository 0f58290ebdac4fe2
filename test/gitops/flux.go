package gitops

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/plimsoll-dev/plimsoll/test/fleet"
	"github.com/plimsoll-dev/plimsoll/test/kube"
	"github.com/plimsoll-dev/plimsoll/test/kube/proc"
)

// fluxNamespace is where Flux keeps its own.
const fluxNamespace = "flux-system"

// Flux are its two controllers, as processes.
type Flux struct {
	processes []*proc.Process
	logs      map[string]string // by the controller's name
}

// builtDir is <repo>/build/flux; an error says what to run when it is missing.
func builtDir() (string, error) {
	testbed, err := kube.BinDir()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(filepath.Dir(filepath.Dir(testbed)), "flux")
	if _, err := os.Stat(filepath.Join(dir, "stamp")); err != nil {
		return "", errors.New("Flux is missing: run `make flux` in the repository")
	}
	return dir, nil
}

// StartFlux brings Flux' definitions into the cluster and starts its controllers there. Logs go to dir.
func StartFlux(ctx context.Context, kubeconfig, dir string) (_ *Flux, err error) {
	built, err := builtDir()
	if err != nil {
		return nil, err
	}
	for _, step := range [][]string{
		{"apply", "--server-side", "-f", filepath.Join(built, "crds")},
		{"wait", "--for=condition=Established", "--timeout=60s", "-f", filepath.Join(built, "crds")},
		{"create", "namespace", fluxNamespace},
	} {
		if _, err := kubectl(ctx, kubeconfig, step...); err != nil {
			return nil, err
		}
	}
	f := &Flux{logs: map[string]string{}}
	defer func() {
		if err != nil {
			err = errors.Join(err, f.Stop())
		}
	}()
	var storage, sourceHealth, applyHealth string
	if err := fleet.FreeAddresses(&storage, &sourceHealth, &applyHealth); err != nil {
		return nil, err
	}
	common := []string{"--metrics-addr=127.0.0.1:0", "--events-addr=", "--log-level=info", "--min-retry-delay=500ms", "--requeue-dependency=1s"}
	if err := os.MkdirAll(filepath.Join(dir, "storage"), 0o755); err != nil {
		return nil, err
	}
	health := map[*proc.Process]string{}
	for _, c := range []struct {
		name, health string
		args         []string
	}{
		{"source-controller", sourceHealth, []string{
			"--storage-path=" + filepath.Join(dir, "storage"), "--storage-addr=" + storage, "--storage-adv-addr=" + storage,
		}},
		{"kustomize-controller", applyHealth, nil},
	} {
		f.logs[c.name] = filepath.Join(dir, c.name+".log")
		p, err := proc.Start(proc.Command{
			Program: filepath.Join(built, "bin", c.name), Args: append(append(c.args, common...), "--health-addr="+c.health), Log: f.logs[c.name],
			Env: []string{"KUBECONFIG=" + kubeconfig, "RUNTIME_NAMESPACE=" + fluxNamespace, "HOME=" + dir, "TMPDIR=" + dir, "PATH=" + os.Getenv("PATH")},
		})
		if err != nil {
			return nil, err
		}
		f.processes, health[p] = append(f.processes, p), c.health
	}
	for p, address := range health {
		if err := p.AwaitReady(ctx, proc.OK(nil, "http://"+address+"/readyz")); err != nil {
			return nil, err
		}
	}
	return f, nil
}

// Stop ends both.
func (f *Flux) Stop() error { return proc.KillAll(f.processes) }

// Logs are the ends of what the controllers have said.
func (f *Flux) Logs() string {
	var text strings.Builder
	for _, name := range slices.Sorted(maps.Keys(f.logs)) {
		fmt.Fprintf(&text, "%s:\n%s\n", name, proc.Tail(f.logs[name], 15))
	}
	return text.String()
}

// kubectl runs the testbed's, and returns what it prints.
func kubectl(ctx context.Context, kubeconfig string, args ...string) (string, error) {
	bin, err := kube.BinDir()
	if err != nil {
		return "", err
	}
	return run(ctx, "", nil, filepath.Join(bin, "kubectl"), append([]string{"--kubeconfig", kubeconfig}, args...)...)
}

// run runs a program and returns what it prints.
func run(ctx context.Context, dir string, environ []string, program string, args ...string) (string, error) {
	command := exec.CommandContext(ctx, program, args...)
	command.Dir = dir
	command.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.TempDir()}, environ...)
	answer, err := command.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w: %s", filepath.Base(program), strings.Join(args, " "), err, strings.TrimSpace(string(answer)))
	}
	return strings.TrimSpace(string(answer)), nil
}
