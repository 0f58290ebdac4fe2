package fleet

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/plimsoll-dev/plimsoll/test/kube"
)

// A Process is a replica that runs as a process of its own: the binary that users run.
type Process struct {
	*Replica

	cmd   *exec.Cmd
	asked atomic.Bool   // to end
	done  chan struct{} // closed when it has ended and been reaped
	err   error         // how it ended; read after done
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
	if err := p.awaitReady(ctx); err != nil {
		_ = p.Kill()
		return nil, fmt.Errorf("start hub %s: %w; its log ends with:\n%s", r.Name, err, p.tail(20))
	}
	return p, nil
}

// Launch runs the replica by a binary, with more in its environment, and does not wait for anything.
func (r *Replica) Launch(binary string, environment ...string) (*Process, error) {
	p, err := r.start(exec.Command(binary, "--config", r.ConfigFile), environment)
	if err != nil {
		return nil, fmt.Errorf("start hub %s: %w", r.Name, err)
	}
	return p, nil
}

func (r *Replica) start(cmd *exec.Cmd, environment []string) (*Process, error) {
	log, err := os.OpenFile(r.LogFile, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer func() { _ = log.Close() }() // the child has a copy of its own
	cmd.Env = append([]string{"HOME=" + filepath.Dir(r.ConfigFile), "PATH=" + os.Getenv("PATH")}, environment...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = childAttributes()

	p := &Process{Replica: r, cmd: cmd, done: make(chan struct{})}
	started := make(chan error, 1)
	go func() {
		// The kernel kills the child when the thread that started it ends, so the thread is held until the child has gone.
		runtime.LockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			p.err = cmd.Wait()
			close(p.done)
		}
	}()
	return p, <-started
}

func (p *Process) awaitReady(ctx context.Context) error {
	return Await(ctx, "the hub to be ready", func(ctx context.Context) (bool, error) {
		if p.Ended() {
			return false, fmt.Errorf("it has ended: %w", p.err)
		}
		return p.Ready(ctx), nil
	})
}

// Ready tells whether /readyz says so.
func (r *Replica) Ready(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+r.Probes+"/readyz", nil)
	if err != nil {
		return false
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return false
	}
	_ = response.Body.Close()
	return response.StatusCode == http.StatusOK
}

// Ended tells whether the process has gone.
func (p *Process) Ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// Done is closed when the process has gone.
func (p *Process) Done() <-chan struct{} { return p.done }

// Stop asks the process to end and waits until it has, or kills it when ctx ends.
func (p *Process) Stop(ctx context.Context) error {
	if err := p.Terminate(); err != nil {
		return err
	}
	select {
	case <-p.done:
		return nil
	case <-ctx.Done():
		return errors.Join(fmt.Errorf("hub %s did not end when asked to: %w", p.Name, ctx.Err()), p.Kill())
	}
}

// Terminate asks the process to end, and does not wait for it. It asks once, however often it is called: a hub that is asked
// twice ends at once, with calls under way.
func (p *Process) Terminate() error {
	if p.asked.Swap(true) {
		return nil
	}
	return p.signal(syscall.SIGTERM)
}

// Freeze stops the process where it is. What was sent to it waits, signals but SIGKILL too.
func (p *Process) Freeze() error { return p.signal(syscall.SIGSTOP) }

// Thaw lets a frozen process go on.
func (p *Process) Thaw() error { return p.signal(syscall.SIGCONT) }

// Pid is the process id; after the process has ended it may be somebody else's.
func (p *Process) Pid() int { return p.cmd.Process.Pid }

// Kill ends the process without warning and returns when it has gone.
func (p *Process) Kill() error {
	if err := p.signal(syscall.SIGKILL); err != nil {
		return err
	}
	<-p.done
	return nil
}

func (p *Process) signal(s syscall.Signal) error {
	if err := p.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("hub %s: %w", p.Name, err)
	}
	return nil
}

// RSS is the memory that the process has resident now, in bytes.
func (p *Process) RSS() (int64, error) {
	file, err := os.Open(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		return 0, fmt.Errorf("memory of hub %s: %w", p.Name, err)
	}
	defer func() { _ = file.Close() }()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		value, ok := strings.CutPrefix(lines.Text(), "VmRSS:")
		if !ok {
			continue
		}
		kilobytes, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(value), "kB")), 10, 64)
		return kilobytes * 1024, err
	}
	return 0, fmt.Errorf("memory of hub %s: /proc does not tell", p.Name)
}

// Processor is the time that the process has had a processor so far, in steps of 10 ms.
func (p *Process) Processor() (time.Duration, error) {
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
	if err != nil {
		return 0, fmt.Errorf("processor time of hub %s: %w", p.Name, err)
	}
	_, rest, _ := bytes.Cut(content, []byte(") ")) // what comes before is a name of any form
	fields := strings.Fields(string(rest))
	const user, system, tick = 11, 12, 10 * time.Millisecond
	if len(fields) <= system {
		return 0, fmt.Errorf("processor time of hub %s: /proc does not tell", p.Name)
	}
	var total time.Duration
	for _, field := range []string{fields[user], fields[system]} {
		ticks, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("processor time of hub %s: %w", p.Name, err)
		}
		total += time.Duration(ticks) * tick
	}
	return total, nil
}

// tail is the end of the replica's log.
func (r *Replica) tail(lines int) string {
	content, err := os.ReadFile(r.LogFile)
	if err != nil {
		return ""
	}
	all := bytes.Split(bytes.TrimSpace(content), []byte("\n"))
	return string(bytes.Join(all[max(len(all)-lines, 0):], []byte("\n")))
}
