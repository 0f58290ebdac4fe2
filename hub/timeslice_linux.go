package hub

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// timeSlice is the shortest that Linux gives (kernel/sched/syscalls.c: 0.1 ms to 100 ms).
const timeSlice = 100 * time.Microsecond

// ShortenTimeSlices asks the kernel to give this process's threads the processor for short times, and sooner for it: when
// the processors are busy, a call that waits for a thread counts for more than what a change of threads costs. It takes
// nothing from other processes, whose share is what it was. Threads that are started later inherit it, and so do processes.
// Kernels before 6.12 take the request and do nothing. An error says which thread the kernel refused; those before it have
// been changed. It may be called at any time, again as well.
//
// The webhook's server ends its turns itself, see docs/decisions/0009.
func ShortenTimeSlices() error {
	const threads = "/proc/self/task"
	// A thread that starts another while this goes on hands down what it has itself, which may be the old slice: threads are
	// listed until none is new.
	shortened := map[string]bool{}
	for before := -1; before < len(shortened); {
		before = len(shortened)
		entries, err := os.ReadDir(threads)
		if err != nil {
			return fmt.Errorf("time slices: %w", err)
		}
		for _, entry := range entries {
			if shortened[entry.Name()] {
				continue
			}
			shortened[entry.Name()] = true
			thread, err := strconv.Atoi(entry.Name())
			if err != nil {
				return fmt.Errorf("time slices: %s: %w", threads, err)
			}
			// A thread may have ended since.
			if err := shortenTimeSlice(thread); err != nil && !errors.Is(err, unix.ESRCH) {
				return fmt.Errorf("time slices: thread %d: %w", thread, err)
			}
		}
	}
	return nil
}

// shortenTimeSlice changes the slice of a thread and nothing else, its priority least of all.
func shortenTimeSlice(thread int) error {
	attributes, err := unix.SchedGetAttr(thread, 0)
	if err != nil {
		return err
	}
	if attributes.Policy != unix.SCHED_NORMAL {
		return nil // whoever chose another policy has a reason
	}
	attributes.Runtime = uint64(timeSlice)
	return unix.SchedSetAttr(thread, attributes, 0)
}
