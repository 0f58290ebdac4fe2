package main

import (
	"context"
	"fmt"
	"io/fs"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

// image measures what the hub's image holds: it has no base, so that is its size.
func (b *bench) image(ctx context.Context) error {
	said, err := exec.CommandContext(ctx, "sh", filepath.Join("deploy", "image", "files.sh"), runtime.GOARCH).CombinedOutput()
	if err != nil {
		return fmt.Errorf("assemble the image's files: %w: %s", err, strings.TrimSpace(string(said)))
	}
	var bytes int64
	err = filepath.WalkDir(filepath.Join("build", "image", runtime.GOARCH), func(_ string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		if err == nil {
			bytes += info.Size()
		}
		return err
	})
	b.report.Record("image-mb", float64(bytes)/1e6)
	return err
}
