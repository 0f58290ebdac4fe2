package proc

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// RSS is the memory that the process has resident now, in bytes. It is read from /proc, which only Linux has.
func (p *Process) RSS() (int64, error) { return p.memory("VmRSS:") }

// PeakRSS is the most memory that the process has had resident so far, in bytes. It is read from /proc, which only Linux has.
func (p *Process) PeakRSS() (int64, error) { return p.memory("VmHWM:") }

// memory reads a line of the process's status, in bytes.
func (p *Process) memory(field string) (int64, error) {
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.Pid()))
	if err != nil {
		return 0, fmt.Errorf("memory of %s: %w", p.name, err)
	}
	for line := range strings.Lines(string(content)) {
		value, ok := strings.CutPrefix(line, field)
		if !ok {
			continue
		}
		kilobytes, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(value), "kB")), 10, 64)
		if err != nil {
			return 0, fmt.Errorf("memory of %s: %w", p.name, err)
		}
		return kilobytes * 1024, nil
	}
	return 0, fmt.Errorf("memory of %s: /proc/%d/status has no %s", p.name, p.Pid(), field)
}

// Processor is the time that the process has had a processor so far, in steps of 10 ms. It is read from /proc, which only Linux
// has.
func (p *Process) Processor() (time.Duration, error) {
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.Pid()))
	if err != nil {
		return 0, fmt.Errorf("processor time of %s: %w", p.name, err)
	}
	fields := afterName(content)
	const user, system, tick = 11, 12, 10 * time.Millisecond
	if len(fields) <= system {
		return 0, fmt.Errorf("processor time of %s: /proc/%d/stat has %d fields after the name, want more than %d", p.name, p.Pid(), len(fields), system)
	}
	var total time.Duration
	for _, field := range []string{fields[user], fields[system]} {
		ticks, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("processor time of %s: %w", p.name, err)
		}
		total += time.Duration(ticks) * tick
	}
	return total, nil
}
