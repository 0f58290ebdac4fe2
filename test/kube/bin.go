package kube

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// modulePath is how the repository's root is distinguished from any other folder with a go.mod.
const modulePath = "github.com/plimsoll-dev/plimsoll"

// binaries are the files that a built testbed consists of.
var binaries = []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl", "kwok"}

// BinDir is the folder with the testbed's binaries, <repo>/build/testbed/bin, found from the working directory
// upwards. It fails when one of them is missing, and says what to run.
func BinDir() (string, error) {
	root, err := repoRoot()
	if err != nil {
		return "", fmt.Errorf("find the testbed's binaries: %w", err)
	}
	dir := filepath.Join(root, "build", "testbed", "bin")
	for _, name := range binaries {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil || info.IsDir() {
			return "", fmt.Errorf("testbed binary %s is missing: run `make testbed` in the repository", name)
		}
	}
	return dir, nil
}

// repoRoot walks up from the working directory to the folder that holds this module's go.mod.
func repoRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if declaresModule(filepath.Join(dir, "go.mod"), modulePath) {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("the working directory is not inside a checkout of " + modulePath)
		}
		dir = parent
	}
}

// declaresModule reports whether the go.mod at path is that of the module named.
func declaresModule(path, module string) bool {
	file, err := os.Open(path)
	if err != nil {
		return false
	}
	defer func() { _ = file.Close() }()
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		if fields := strings.Fields(lines.Text()); len(fields) == 2 && fields[0] == "module" {
			return fields[1] == module
		}
	}
	return false
}
