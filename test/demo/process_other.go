//go:build !linux

package main

import "syscall"

// childAttributes put a child in a process group of its own. Nothing but stop ends it.
func childAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
