package proc

import "syscall"

// attributes put a child in a process group of its own and have the kernel kill it when this process dies, however it dies.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
