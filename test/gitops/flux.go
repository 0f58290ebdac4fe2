package gitops

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/plimsoll-dev/plimsoll/test/fleet"
	"github.com/plimsoll-dev/plimsoll/test/kube"
)

// fluxNamespace is where Flux keeps its own.
const fluxNamespace = "flux-system"

// Flux are its two controllers, as processes.
type Flux struct {
	dir       string
	processes []*exec.Cmd
	ended     []chan struct{}
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
	f := &Flux{dir: dir}
	defer func() {
		if err != nil {
			f.Stop()
		}
	}()
	var storage, sourceHealth, applyHealth string
	if err := fleet.FreeAddresses(&storage, &sourceHealth, &applyHealth); err != nil {
		return nil, err
	}
	common := []string{"--metrics-addr=127.0.0.1:0", "--events-addr=", "--log-level=info", "--min-retry-delay=500ms", "--requeue-dependency=1s"}
	for _, c := range []struct {
		name, health string
		args         []string
	}{
		{"source-controller", sourceHealth, []string{
			"--storage-path=" + filepath.Join(dir, "storage"), "--storage-addr=" + storage, "--storage-adv-addr=" + storage,
		}},
		{"kustomize-controller", applyHealth, nil},
	} {
		command := exec.Command(filepath.Join(built, "bin", c.name), append(append(c.args, common...), "--health-addr="+c.health)...)
		command.Env = []string{"KUBECONFIG=" + kubeconfig, "RUNTIME_NAMESPACE=" + fluxNamespace, "HOME=" + dir, "TMPDIR=" + dir, "PATH=" + os.Getenv("PATH")}
		if err := f.start(c.name, command); err != nil {
			return nil, err
		}
	}
	for _, health := range []string{sourceHealth, applyHealth} {
		if err := f.awaitHealth(ctx, health); err != nil {
			return nil, err
		}
	}
	return f, nil
}

// start runs a controller whose output goes to a file.
func (f *Flux) start(name string, command *exec.Cmd) error {
	if err := os.MkdirAll(filepath.Join(f.dir, "storage"), 0o755); err != nil {
		return err
	}
	log, err := os.Create(filepath.Join(f.dir, name+".log"))
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }() // the child has a copy of its own
	command.Stdout, command.Stderr, command.SysProcAttr = log, log, childAttributes()
	started, ended := make(chan error, 1), make(chan struct{})
	go func() {
		// The kernel kills the child when the thread that started it ends, so the thread is held until the child has gone.
		runtime.LockOSThread()
		err := command.Start()
		started <- err
		if err == nil {
			_ = command.Wait()
			close(ended)
		}
	}()
	if err := <-started; err != nil {
		return fmt.Errorf("start %s: %w", name, err)
	}
	f.processes, f.ended = append(f.processes, command), append(f.ended, ended)
	return nil
}

func (f *Flux) awaitHealth(ctx context.Context, address string) error {
	return fleet.Await(ctx, "Flux to be ready", func(ctx context.Context) (bool, error) {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/readyz", nil)
		if err != nil {
			return false, err
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return false, err
		}
		_ = response.Body.Close()
		return response.StatusCode == http.StatusOK, nil
	})
}

// Stop ends both.
func (f *Flux) Stop() {
	for i, process := range f.processes {
		_ = process.Process.Kill() // it may have ended
		<-f.ended[i]
	}
}

// Logs are the ends of what the controllers have said.
func (f *Flux) Logs() string {
	var text strings.Builder
	for _, name := range []string{"source-controller", "kustomize-controller"} {
		content, _ := os.ReadFile(filepath.Join(f.dir, name+".log"))
		lines := strings.Split(strings.TrimSpace(string(content)), "\n")
		fmt.Fprintf(&text, "%s:\n%s\n", name, strings.Join(lines[max(len(lines)-15, 0):], "\n"))
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
