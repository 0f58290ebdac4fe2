package kube

import (
	"bytes"
	"fmt"
	"os"
	"syscall"
)

// childAttributes put a child in a process group of its own and have the kernel kill it when we die, however we die.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// isOurs tells whether the process with this id was started for the cluster in dir. Ids are used again, so an id
// alone never justifies a kill; each component names its cluster's folder in its arguments.
func isOurs(pid int, dir string) bool {
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	return err == nil && bytes.Contains(line, []byte(dir))
}
