package fleet

import "syscall"

// childAttributes keep a terminal's Ctrl-C from a child, and have the kernel kill it when we die, however we die.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
