//go:build !linux

package fleet

import "syscall"

// childAttributes keep a terminal's Ctrl-C from a child.
func childAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
