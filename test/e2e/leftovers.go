package e2e

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/moby/moby/client"
	"github.com/testcontainers/testcontainers-go"
)

// Labels of every container and network. The engine may serve several machines, and each looks after its own.
const (
	hostLabel = "plimsoll.e2e.host"
	runLabel  = "plimsoll.e2e.run"
)

// markSuffix ends the names of marks that are complete.
const markSuffix = ".run"

// A mark is a file that a run keeps locked, and whose path is on all that it makes. The kernel unlocks it when the run dies,
// so what has a mark that can be locked, or is gone, was left by the dead.
type mark struct {
	file *os.File
	path string
	host string
}

// marksDir is the one place for this user's marks.
func marksDir() string {
	return filepath.Join(os.TempDir(), "plimsoll-running-containers."+strconv.Itoa(os.Getuid()))
}

// newMark makes one. The file gets its name once it is locked, so that nobody takes it for a dead run's.
func newMark() (*mark, error) {
	host, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("mark this run: %w", err)
	}
	if err := os.MkdirAll(marksDir(), 0o700); err != nil {
		return nil, fmt.Errorf("mark this run: %w", err)
	}
	file, err := os.CreateTemp(marksDir(), "new-")
	if err != nil {
		return nil, fmt.Errorf("mark this run: %w", err)
	}
	m := &mark{file: file, path: file.Name() + markSuffix, host: host}
	err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err == nil {
		err = os.Rename(file.Name(), m.path)
	}
	if err != nil {
		_ = os.Remove(file.Name())
		_ = file.Close()
		return nil, fmt.Errorf("mark this run: %w", err)
	}
	return m, nil
}

// labels are on all that the run makes.
func (m *mark) labels() map[string]string {
	return map[string]string{hostLabel: m.host, runLabel: m.path}
}

// remove says that nothing of the run is left.
func (m *mark) remove() {
	_ = os.Remove(m.path)
	_ = m.file.Close()
}

// sweep removes containers and networks of runs on this machine that have died. What cannot be removed now is removed next
// time; it is no reason not to start.
func sweep(ctx context.Context, api *testcontainers.DockerClient) {
	host, err := os.Hostname()
	if err != nil {
		return
	}
	here := labelled(map[string]string{hostLabel: host})
	containers, err := api.ContainerList(ctx, client.ContainerListOptions{All: true, Filters: here})
	if err != nil {
		return
	}
	networks, err := api.NetworkList(ctx, client.NetworkListOptions{Filters: here})
	if err != nil {
		return
	}
	runs := map[string]bool{} // by mark
	for _, one := range containers.Items {
		runs[one.Labels[runLabel]] = true
	}
	for _, one := range networks.Items {
		runs[one.Labels[runLabel]] = true
	}
	// Marks of runs that died before they had made anything.
	marks, _ := filepath.Glob(filepath.Join(marksDir(), "*"+markSuffix))
	for _, path := range marks {
		runs[path] = true
	}
	for path := range runs {
		_ = ifDead(path, func() error {
			return removeRun(ctx, api, map[string]string{hostLabel: host, runLabel: path})
		})
	}
}

// labelled passes what has all these labels.
func labelled(labels map[string]string) client.Filters {
	filters := client.Filters{}
	for name, value := range labels {
		filters.Add("label", name+"="+value)
	}
	return filters
}

// removeRun removes all containers and networks that have these labels.
func removeRun(ctx context.Context, api *testcontainers.DockerClient, labels map[string]string) error {
	containers, err := api.ContainerList(ctx, client.ContainerListOptions{All: true, Filters: labelled(labels)})
	if err != nil {
		return err
	}
	var problems []error
	for _, one := range containers.Items {
		_, err := api.ContainerRemove(ctx, one.ID, client.ContainerRemoveOptions{Force: true, RemoveVolumes: true})
		problems = append(problems, err)
	}
	networks, err := api.NetworkList(ctx, client.NetworkListOptions{Filters: labelled(labels)})
	problems = append(problems, err)
	for _, one := range networks.Items {
		_, err := api.NetworkRemove(ctx, one.ID, client.NetworkRemoveOptions{})
		problems = append(problems, err)
	}
	return errors.Join(problems...)
}

// errAlive says that a mark belongs to a run that goes on.
var errAlive = errors.New("its run goes on")

// ifDead clears up after the run of a mark, and then removes the mark, unless the run is alive.
func ifDead(path string, clear func() error) error {
	if filepath.Dir(path) != marksDir() || !strings.HasSuffix(path, markSuffix) {
		return fmt.Errorf("%q is no mark of ours", path)
	}
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return clear()
	}
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return errAlive
	}
	if err := clear(); err != nil {
		return err
	}
	return os.Remove(path)
}
