//go:build !linux

package webhook

import "runtime"

// yield lets other goroutines go first; not every system lets threads do it.
func yield() { runtime.Gosched() }
