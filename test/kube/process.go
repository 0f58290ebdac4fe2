package kube

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"sync/atomic"
	"syscall"
)

// A launcher starts processes from one OS thread that lives as long as the cluster does.
//
// The kernel kills a child with PR_SET_PDEATHSIG when the thread that started it ends, and the Go runtime ends threads
// as it likes; only a thread that a goroutine holds on to makes the signal mean "our process has died".
type launcher struct {
	jobs chan func()
	done chan struct{}
}

func newLauncher() *launcher {
	l := &launcher{jobs: make(chan func()), done: make(chan struct{})}
	go func() {
		defer close(l.done)
		runtime.LockOSThread()
		// Never unlocked: the thread ends with this goroutine, after the last child has gone.
		for job := range l.jobs {
			job()
		}
	}()
	return l
}

// start runs cmd.Start on the launcher's thread.
func (l *launcher) start(cmd *exec.Cmd) error {
	result := make(chan error, 1)
	l.jobs <- func() { result <- cmd.Start() }
	return <-result
}

// close ends the thread. Every child that is still there dies with it.
func (l *launcher) close() {
	close(l.jobs)
	<-l.done
}

// A process is one running component.
type process struct {
	name    string
	logPath string
	cmd     *exec.Cmd
	done    chan struct{} // closed when it has ended and been reaped
	err     error         // how it ended; read after done
	frozen  atomic.Bool   // by us, with SIGSTOP
}

// startProcess runs a binary with its output appended to a log file, in a process group of its own, so that a Ctrl-C
// on the terminal reaches only us and we end things in order.
func startProcess(l *launcher, name, binary string, args, env []string, dir, logPath string) (*process, error) {
	log, err := os.OpenFile(logPath, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("start %s: open its log: %w", name, err)
	}
	defer func() { _ = log.Close() }() // the child has a copy of its own

	cmd := exec.Command(binary, args...)
	cmd.Dir, cmd.Env = dir, env
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = childAttributes()
	if err := l.start(cmd); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	p := &process{name: name, logPath: logPath, cmd: cmd, done: make(chan struct{})}
	go func() {
		p.err = cmd.Wait()
		close(p.done)
	}()
	return p, nil
}

// pid is the process's id; after it has ended the id may belong to somebody else.
func (p *process) pid() int { return p.cmd.Process.Pid }

// ended tells whether the process has gone.
func (p *process) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// outcome says how the process has ended, for people; call it after done.
func (p *process) outcome() string {
	if p.err != nil {
		return p.err.Error()
	}
	return "exit status 0"
}

// signal sends a signal; that the process has gone already is no error.
func (p *process) signal(s syscall.Signal) error {
	if err := p.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("signal %s: %w", p.name, err)
	}
	return nil
}

// kill ends the process at once, also one that is stopped, and returns when it has gone.
func (p *process) kill() error {
	if err := p.signal(syscall.SIGKILL); err != nil {
		return err
	}
	<-p.done
	return nil
}

// tail is the end of the process's log, for error messages.
func (p *process) tail(lines int) string {
	content, err := os.ReadFile(p.logPath)
	if err != nil {
		return ""
	}
	content = bytes.TrimSpace(content)
	all := bytes.Split(content, []byte("\n"))
	if len(all) > lines {
		all = all[len(all)-lines:]
	}
	return string(bytes.Join(all, []byte("\n")))
}
