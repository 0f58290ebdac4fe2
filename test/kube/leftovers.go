package kube

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
)

// recordSuffix marks the records that are complete, and locked by whom they belong to.
const recordSuffix = ".cluster"

// A record says what a cluster would leave behind if its owner were killed. The owner keeps the file locked, and the
// kernel unlocks it when the owner dies, so a record that can be locked is one of the dead.
type record struct {
	mu   sync.Mutex
	file *os.File
	note note
}

// note is what a record's file says.
type note struct {
	Dir    string `json:"dir"`
	Remove bool   `json:"remove"` // the folder is temporary
	Pids   []int  `json:"pids"`
}

// recordsDir is the one place where this user's testbeds are noted.
func recordsDir() string {
	return filepath.Join(os.TempDir(), "plimsoll-running-clusters."+strconv.Itoa(os.Getuid()))
}

// newRecord notes a cluster. The file gets its final name once it is locked, so that nobody takes it for a dead one's.
func newRecord(dir string, remove bool) (*record, error) {
	if err := os.MkdirAll(recordsDir(), 0o700); err != nil {
		return nil, fmt.Errorf("note the cluster: %w", err)
	}
	file, err := os.CreateTemp(recordsDir(), "new-")
	if err != nil {
		return nil, fmt.Errorf("note the cluster: %w", err)
	}
	r := &record{file: file, note: note{Dir: dir, Remove: remove}}
	if err := r.publish(); err != nil {
		r.remove()
		return nil, fmt.Errorf("note the cluster: %w", err)
	}
	return r, nil
}

func (r *record) publish() error {
	if err := syscall.Flock(int(r.file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return err
	}
	if err := r.write(); err != nil {
		return err
	}
	return os.Rename(r.file.Name(), r.path())
}

func (r *record) path() string { return r.file.Name() + recordSuffix }

// write replaces the file's content. A reader that finds half of it treats it like none.
func (r *record) write() error {
	content, err := json.Marshal(r.note)
	if err != nil {
		return err
	}
	if err := r.file.Truncate(0); err != nil {
		return err
	}
	_, err = r.file.WriteAt(content, 0)
	return err
}

// add notes one more process.
func (r *record) add(pid int) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.note.Pids = append(r.note.Pids, pid)
	if err := r.write(); err != nil {
		return fmt.Errorf("note process %d: %w", pid, err)
	}
	return nil
}

// remove drops the record: nothing is left to clean up.
func (r *record) remove() {
	_ = os.Remove(r.path())
	_ = os.Remove(r.file.Name())
	_ = r.file.Close()
}

// sweepLeftovers kills and removes what testbeds whose process has died left behind. Others are never touched. What
// cannot be swept now is swept next time; it is no reason not to start.
func sweepLeftovers() {
	paths, _ := filepath.Glob(filepath.Join(recordsDir(), "*"+recordSuffix))
	for _, path := range paths {
		_ = sweepRecord(path)
	}
}

func sweepRecord(path string) error {
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return err // its owner lives
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var left note
	if err := json.Unmarshal(content, &left); err == nil {
		if err := left.clear(); err != nil {
			return err
		}
	}
	return os.Remove(path)
}

// clear kills the processes that are still those of the cluster, and removes its folder if it was temporary.
func (n note) clear() error {
	if !filepath.IsAbs(n.Dir) {
		return fmt.Errorf("the record names %q, which is no absolute path", n.Dir)
	}
	var problems []error
	for _, pid := range n.Pids {
		if pid > 1 && isOurs(pid, n.Dir) {
			problems = append(problems, syscall.Kill(pid, syscall.SIGKILL))
		}
	}
	if n.Remove && strings.HasPrefix(filepath.Base(n.Dir), "plimsoll-") {
		problems = append(problems, os.RemoveAll(n.Dir))
	}
	return errors.Join(problems...)
}
