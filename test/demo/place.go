package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"github.com/plimsoll-dev/plimsoll/test/kube"
)

// Paths are relative to the repository's root, which the demo changes to: printed lines use the same ones.
const (
	folder     = "build/demo"
	hubLog     = folder + "/hub.log"
	hubConfig  = folder + "/hub.yaml"
	hubAccount = folder + "/plimsoll-hub.kubeconfig"
	caFile     = folder + "/ca.crt"
	tokenFile  = folder + "/token"
	lockFile   = folder + "/lock"

	hubBinary = "build/bin/plimsoll-hub"
	cliBinary = "build/bin/plimsoll"
	kubectl   = "build/testbed/bin/kubectl"
	grpcurl   = "build/tools/grpcurl"
)

// kubeconfig is the path of the kubeconfig for a cluster's admin.
func kubeconfig(cluster string) string { return folder + "/" + cluster + ".kubeconfig" }

// enterRepository makes the repository's root the working directory, wherever in it the demo was started, and says what
// has to be built before the demo can run.
func enterRepository() error {
	bin, err := kube.BinDir()
	if err != nil {
		return err
	}
	if err := os.Chdir(filepath.Join(bin, "..", "..", "..")); err != nil {
		return fmt.Errorf("change to the repository's root: %w", err)
	}
	for _, path := range []string{hubBinary, cliBinary, grpcurl} {
		if _, err := os.Stat(path); err != nil {
			return fmt.Errorf("%s is missing: run `make demo`, which builds it", path)
		}
	}
	return nil
}

// place is the demo's folder while this process may use it.
type place struct{ lock *os.File }

// takePlace empties the folder and keeps other demos out of it: they would overwrite the kubeconfigs that this one's
// printed lines use.
func takePlace() (*place, error) {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, fmt.Errorf("create the demo's folder: %w", err)
	}
	lock, err := os.OpenFile(lockFile, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock the demo's folder: %w", err)
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = lock.Close()
		return nil, errors.New("another demo runs in this checkout: end it first (Ctrl-C)")
	}
	p := &place{lock: lock}
	return p, p.clear(lockFile)
}

// leave removes everything but the hub's log, and lets the next demo in.
func (p *place) leave() error {
	return errors.Join(p.clear(hubLog), p.lock.Close())
}

// clear removes everything in the folder but one file.
func (p *place) clear(but string) error {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return fmt.Errorf("clear the demo's folder: %w", err)
	}
	var problems []error
	for _, entry := range entries {
		if path := filepath.Join(folder, entry.Name()); path != filepath.FromSlash(but) {
			problems = append(problems, os.RemoveAll(path))
		}
	}
	return errors.Join(problems...)
}

// keep writes a file that only its owner may read.
func keep(path string, content []byte) error {
	if err := os.WriteFile(path, content, 0o600); err != nil {
		return fmt.Errorf("write the demo's files: %w", err)
	}
	return nil
}
