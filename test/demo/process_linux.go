package main

import "syscall"

// childAttributes put a child in a process group of its own and have the kernel kill it when we die, however we die.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
