//go:build !linux

package gitops

import "syscall"

func childAttributes() *syscall.SysProcAttr { return nil }
