// Package proc runs programs as processes of their own, for the testbed and all that is tested on it: control planes, hubs,
// Flux, the commands of the documentation.
//
// A Process writes to a log file, is waited for until it is ready, is stopped in order or killed, and can be frozen. That it has
// ended is an event (Done), and an error about it says how its log ends. It has a process group of its own, so that a Ctrl-C on
// the terminal reaches only the process that started it, which ends things in order. On Linux the kernel kills it when that one
// dies, however it dies.
//
// Commands that are run to their end, such as kubectl and git, need none of this: os/exec does.
//
// Where to look: process.go starts and ends, ready.go waits, freeze.go freezes, log.go quotes the log, usage.go reads memory and processor time.
package proc
