//go:build !linux

package kube

import (
	"os/exec"
	"strconv"
	"strings"
)

// isOurs reports whether the process with this id was started for the cluster in dir. Ids are used again, so an id
// alone never justifies a kill; each component names its cluster's folder in its arguments.
func isOurs(pid int, dir string) bool {
	line, err := exec.Command("ps", "-o", "command=", "-p", strconv.Itoa(pid)).Output()
	return err == nil && strings.Contains(string(line), dir)
}
