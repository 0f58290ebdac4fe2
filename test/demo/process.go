package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"
)

// logTail is how many lines of a log go into an error.
const logTail = 10

// process is a program that runs beside the demo and dies with it, whatever ends the demo.
type process struct {
	name string
	cmd  *exec.Cmd
	log  string
	done chan struct{} // closed when it has ended and been reaped
	err  error         // how it ended; read after done
}

// startProcess starts a program with its output in a new log file, in a process group of its own: a Ctrl-C on the terminal
// reaches only the demo, which ends things in order.
func startProcess(log string, environ []string, program string, args ...string) (*process, error) {
	file, err := os.OpenFile(log, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("start %s: open its log: %w", program, err)
	}
	defer func() { _ = file.Close() }() // the child has a copy of its own
	p := &process{name: program, cmd: exec.Command(program, args...), log: log, done: make(chan struct{})}
	p.cmd.Env = environ
	p.cmd.Stdout, p.cmd.Stderr = file, file
	p.cmd.SysProcAttr = childAttributes()
	started := make(chan error, 1)
	go func() {
		// The kernel ties the child's life to the thread that started it, so that thread has to stay.
		runtime.LockOSThread()
		err := p.cmd.Start()
		started <- err
		if err == nil {
			p.err = p.cmd.Wait()
		}
		close(p.done)
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", program, err)
	}
	return p, nil
}

// stop asks the program to end, and kills it when it has not done so within the patience. It returns how the program ended
// when that was not as asked. A program that has ended already is no error.
func (p *process) stop(patience time.Duration) error {
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("stop %s: %w", p.name, err)
	}
	select {
	case <-p.done:
		if p.err != nil {
			return fmt.Errorf("stop %s: it ended with %w; %s", p.name, p.err, p.tail())
		}
		return nil
	case <-time.After(patience):
	}
	_ = p.cmd.Process.Kill() // it fails only when the program has just ended
	<-p.done
	return fmt.Errorf("stop %s: it did not end within %s and was killed; %s", p.name, patience, p.tail())
}

// ended is an error when the program does not run any more.
func (p *process) ended() error {
	select {
	case <-p.done:
		outcome := "exit status 0"
		if p.err != nil {
			outcome = p.err.Error()
		}
		return fmt.Errorf("%s has ended (%s); %s", p.name, outcome, p.tail())
	default:
		return nil
	}
}

// tail says where the log is and how it ends.
func (p *process) tail() string {
	content, err := os.ReadFile(p.log)
	if err != nil {
		return "its log cannot be read"
	}
	lines := strings.Split(string(bytes.TrimSpace(content)), "\n")
	if len(lines) > logTail {
		lines = lines[len(lines)-logTail:]
	}
	return fmt.Sprintf("%s ends with:\n%s", p.log, strings.Join(lines, "\n"))
}

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
