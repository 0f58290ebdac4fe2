package webhook

import "golang.org/x/sys/unix"

// yield lets the threads that wait for this processor go first. It is over within their time slices, so the Go scheduler
// need not know.
func yield() { _, _, _ = unix.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0) }
