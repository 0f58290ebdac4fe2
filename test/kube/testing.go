package kube

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// New starts a cluster for a test and stops it when the test ends. It fails the test when the cluster does not start,
// so a missing testbed is seen. When the test failed, the cluster's logs are kept in <repo>/build/logs/<test>/<cluster>.
//
// Starting takes seconds: share one cluster between the tests of a package (Start in TestMain) and keep them apart by
// namespace, unless a test breaks its cluster.
func New(t testing.TB, opts Options) *Cluster {
	t.Helper()
	c, err := Start(context.Background(), opts)
	if err != nil {
		t.Fatalf("the testbed did not start: %v", err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			if where, err := c.KeepLogs(t.Name()); err != nil {
				t.Logf("the logs of cluster %s are lost: %v", c.Name(), err)
			} else {
				t.Logf("the logs of cluster %s are in %s", c.Name(), where)
			}
		}
		if err := c.Stop(); err != nil {
			t.Errorf("clean up: %v", err)
		}
	})
	return c
}

// unsafeInPath is what a test's name may hold and a folder's should not.
var unsafeInPath = regexp.MustCompile(`[^A-Za-z0-9._-]+`)

// KeepLogs copies the components' logs and the audit log to <repo>/build/logs/<occasion>/<cluster>, in place of older
// ones, and says where they are. Call it before Stop.
func (c *Cluster) KeepLogs(occasion string) (string, error) {
	root, err := repoRoot()
	if err != nil {
		return "", err
	}
	target := filepath.Join(root, "build", "logs", unsafeInPath.ReplaceAllString(occasion, "_"), c.name)
	if err := os.RemoveAll(target); err != nil {
		return "", fmt.Errorf("keep logs: %w", err)
	}
	if err := os.MkdirAll(target, 0o755); err != nil {
		return "", fmt.Errorf("keep logs: %w", err)
	}
	problems := []error{copyFile(c.file(auditLog), filepath.Join(target, auditLog))}
	for _, component := range c.components() {
		path := c.logFile(component)
		problems = append(problems, copyFile(path, filepath.Join(target, filepath.Base(path))))
	}
	if err := errors.Join(problems...); err != nil {
		return "", fmt.Errorf("keep logs: %w", err)
	}
	return target, nil
}

// copyFile copies a file; one that is not there is no error, for its component may never have started.
func copyFile(from, to string) error {
	source, err := os.Open(from)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = source.Close() }()
	target, err := os.Create(to)
	if err != nil {
		return err
	}
	_, err = io.Copy(target, source)
	return errors.Join(err, target.Close())
}
