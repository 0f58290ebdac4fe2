package kube

import (
	"context"
	"errors"
	"fmt"
	"os"
)

// A Backup is a copy of what an etcd has stored. It is removed with its cluster.
type Backup struct{ dir string }

// Backup copies what etcd has stored. The API server and etcd are stopped meanwhile, and run again when it returns.
func (c *Cluster) Backup(ctx context.Context) (*Backup, error) {
	dir, err := os.MkdirTemp(c.dir, "backup-")
	if err != nil {
		return nil, fmt.Errorf("cluster %s: back etcd up: %w", c.name, err)
	}
	err = c.withoutEtcd(ctx, func() error { return os.CopyFS(dir, os.DirFS(c.file("etcd"))) })
	if err != nil {
		return nil, fmt.Errorf("cluster %s: back etcd up: %w", c.name, err)
	}
	return &Backup{dir: dir}, nil
}

// Restore puts etcd back to what it had stored at the time of the backup: resourceVersions go back as well. The API server
// and etcd are stopped meanwhile, and run again when it returns. A backup may be restored more than once.
func (c *Cluster) Restore(ctx context.Context, backup *Backup) error {
	err := c.withoutEtcd(ctx, func() error {
		if err := os.RemoveAll(c.file("etcd")); err != nil {
			return err
		}
		return os.CopyFS(c.file("etcd"), os.DirFS(backup.dir))
	})
	if err != nil {
		return fmt.Errorf("cluster %s: restore etcd: %w", c.name, err)
	}
	return nil
}

// withoutEtcd does something while neither the API server nor etcd runs, and starts both again whatever came of it.
func (c *Cluster) withoutEtcd(ctx context.Context, do func() error) error {
	if err := errors.Join(c.StopAPIServer(), c.Kill(Etcd)); err != nil {
		return err
	}
	done := do()
	if err := c.Revive(ctx, Etcd); err != nil {
		return errors.Join(done, err)
	}
	return errors.Join(done, c.awaitEtcd(ctx), c.StartAPIServer(ctx))
}
