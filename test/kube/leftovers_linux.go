package kube

import (
	"bytes"
	"fmt"
	"os"
)

// isOurs reports whether the process with this id was started for the cluster in dir. Ids are used again, so an id
// alone never justifies a kill; each component names its cluster's folder in its arguments.
func isOurs(pid int, dir string) bool {
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	return err == nil && bytes.Contains(line, []byte(dir))
}
