//go:build !linux

package proc

import "syscall"

// attributes put a child in a process group of its own. Outside Linux it outlives this process if this process is killed.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
