package proc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"syscall"
)

// A Command is a program to run.
type Command struct {
	// Name of the process in errors. Default: the last element of Program.
	Name string
	// Program is a path, or a name to look for in PATH; Args are what it is called with, without its name.
	Program string
	Args    []string
	// Env is the whole environment, as NAME=value. Nothing is added: nil is an empty environment.
	Env []string
	// Dir is the working directory. Default: that of this process.
	Dir string
	// Log is the file to which standard output and standard error are appended. It is made if it is not there, for its owner to
	// read. Default: both go to the standard error of this process, and errors quote nothing.
	Log string
	// Stdin is what the program reads. Default: nothing.
	Stdin io.Reader
	// Stdout takes standard output in place of the log. A writer that is no *os.File must take what is written until the process
	// has ended, or the process never counts as ended.
	Stdout io.Writer
}

// A Process is a program that was started. Its methods may be called from several goroutines at once.
type Process struct {
	name string
	log  string
	cmd  *exec.Cmd

	asked  atomic.Bool // to end
	frozen atomic.Bool

	done    chan struct{} // closed when it has ended and been reaped
	err     error         // how it ended; read after done
	unasked bool          // it ended by itself; read after done
}

// Start starts a program and does not wait for anything.
func Start(c Command) (*Process, error) {
	p := &Process{name: c.Name, log: c.Log, cmd: exec.Command(c.Program, c.Args...), done: make(chan struct{})}
	if p.name == "" {
		p.name = filepath.Base(c.Program)
	}
	p.cmd.Dir, p.cmd.Env, p.cmd.Stdin = c.Dir, c.Env, c.Stdin
	if p.cmd.Env == nil {
		p.cmd.Env = []string{} // of a nil one os/exec makes this process's
	}
	p.cmd.SysProcAttr = attributes()
	output := os.Stderr
	if c.Log != "" {
		file, err := os.OpenFile(c.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			return nil, fmt.Errorf("start %s: open its log: %w", p.name, err)
		}
		defer func() { _ = file.Close() }() // the child has a copy of its own
		output = file
	}
	p.cmd.Stdout, p.cmd.Stderr = output, output
	if c.Stdout != nil {
		p.cmd.Stdout = c.Stdout
	}
	started := make(chan error, 1)
	go p.run(started)
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", p.name, err)
	}
	return p, nil
}

// run starts the process and reaps it.
func (p *Process) run(started chan<- error) {
	// The kernel kills a child when the thread that started it ends, and the Go runtime ends threads as it likes. A thread that is
	// held until the child has gone makes it mean "this process has died".
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err := p.cmd.Start()
	started <- err
	if err != nil {
		return
	}
	p.err = p.cmd.Wait()
	p.unasked = !p.asked.Load()
	close(p.done)
}

// Pid is the process id. After the process has ended it may be somebody else's.
func (p *Process) Pid() int { return p.cmd.Process.Pid }

// Done is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Ended reports whether the process has ended.
func (p *Process) Ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// Wait waits until the process has ended. The error is nil for exit status 0, and else says how the process ended and how its
// log ends.
func (p *Process) Wait() error {
	<-p.done
	if p.err == nil {
		return nil
	}
	return p.outcome()
}

// Failure is an error when the process has ended and was not asked to, by Terminate, Stop or Kill: exit status 0 is no excuse.
func (p *Process) Failure() error {
	if !p.Ended() || !p.unasked {
		return nil
	}
	return p.outcome()
}

// outcome says how the process has ended; call it after done.
func (p *Process) outcome() error {
	if p.err == nil {
		return fmt.Errorf("%s has ended: exit status 0%s", p.name, p.quote())
	}
	return fmt.Errorf("%s has ended: %w%s", p.name, p.err, p.quote())
}

// Terminate asks the process to end (SIGTERM), and does not wait for it. It asks once, however often it is called: a hub that is
// asked twice ends at once, with calls under way. A frozen process hears of it when it thaws.
func (p *Process) Terminate() error {
	if p.asked.Swap(true) {
		return nil
	}
	return p.signal(syscall.SIGTERM)
}

// Stop asks the process to end, thaws it, and waits until it has ended, in whatever way. When ctx ends first, it kills the
// process and returns an error that wraps that of ctx.
func (p *Process) Stop(ctx context.Context) error {
	if err := errors.Join(p.Terminate(), p.Thaw()); err != nil {
		return err
	}
	select {
	case <-p.done:
		return nil
	case <-ctx.Done():
	}
	if err := p.Kill(); err != nil {
		return err
	}
	return fmt.Errorf("%s did not end when asked to and was killed: %w%s", p.name, context.Cause(ctx), p.quote())
}

// Kill ends the process at once, a frozen one too (SIGKILL), and returns when it has ended.
func (p *Process) Kill() error { return KillAll([]*Process{p}) }

// KillAll kills processes, all at once, and returns when they have ended.
func KillAll(processes []*Process) error {
	problems := make([]error, len(processes))
	for i, p := range processes {
		p.asked.Store(true)
		problems[i] = p.signal(syscall.SIGKILL)
	}
	for i, p := range processes {
		if problems[i] == nil {
			<-p.done
		}
	}
	return errors.Join(problems...)
}

// signal sends a signal. That the process has ended already is no error.
func (p *Process) signal(s syscall.Signal) error {
	if err := p.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("signal %s: %w", p.name, err)
	}
	return nil
}
