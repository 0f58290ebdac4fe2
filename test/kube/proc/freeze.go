package proc

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// freezeTime is how long the threads of a process may take to stop. They take as long as they wait for a processor.
const freezeTime = 10 * time.Second

// Freeze stops the process where it is (SIGSTOP). What is sent to it waits, signals but SIGKILL too. The signal reaches one
// thread after the other, and those that it has not reached go on: on Linux, Freeze returns when all have stopped. What has ended
// already is no error.
func (p *Process) Freeze() error {
	p.frozen.Store(true)
	if err := p.signal(syscall.SIGSTOP); err != nil {
		return err
	}
	for deadline := time.Now().Add(freezeTime); p.runs(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			return fmt.Errorf("%s did not stop within %s of SIGSTOP", p.name, freezeTime)
		}
	}
	return nil
}

// Thaw lets a frozen process go on (SIGCONT).
func (p *Process) Thaw() error {
	p.frozen.Store(false)
	return p.signal(syscall.SIGCONT)
}

// Frozen reports whether the process is frozen by Freeze.
func (p *Process) Frozen() bool { return p.frozen.Load() && !p.Ended() }

// runs reports whether a thread of the process has not stopped, where the system has a /proc to say so.
func (p *Process) runs() bool {
	if p.Ended() {
		return false
	}
	threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", p.Pid())) // the pattern is well-formed
	for _, thread := range threads {
		stat, err := os.ReadFile(thread)
		if err != nil {
			continue // it has just ended
		}
		switch state := afterName(stat)[0]; state {
		case "T", "t", "Z", "X": // stopped, traced, or ended
		default:
			return true
		}
	}
	return false
}

// afterName are the fields of /proc/PID/stat that follow the name, which may hold anything. There is one at least: the state.
func afterName(stat []byte) []string {
	if fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:])); len(fields) > 0 {
		return fields
	}
	return []string{""}
}
