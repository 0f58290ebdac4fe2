package gitops

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/http/cgi"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// A Repository is a working tree and the repository that it is pushed to, which is served on loopback.
type Repository struct {
	// Dir is the working tree.
	Dir string
	// URL is where it is served.
	URL string

	bare   string
	server *http.Server
}

// NewRepository makes an empty one below dir and serves it.
func NewRepository(ctx context.Context, dir string) (*Repository, error) {
	r := &Repository{Dir: filepath.Join(dir, "work"), bare: filepath.Join(dir, "served", "fleet.git")}
	for _, folder := range []string{r.Dir, r.bare} {
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return nil, err
		}
	}
	steps := [][]string{
		{"init", "--quiet", "--bare", "--initial-branch=main", r.bare},
		{"init", "--quiet", "--initial-branch=main", "."},
		{"remote", "add", "origin", r.bare},
		{"config", "push.autoSetupRemote", "true"},
	}
	for _, step := range steps {
		if _, err := r.git(ctx, step...); err != nil {
			return nil, err
		}
	}
	return r, r.serve(ctx)
}

// serve answers Git's own protocol over HTTP.
func (r *Repository) serve(ctx context.Context) error {
	path, err := r.git(ctx, "--exec-path")
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("serve a repository: %w", err)
	}
	backend := &cgi.Handler{
		Path: filepath.Join(path, "git-http-backend"), Dir: filepath.Dir(r.bare),
		Env: append(gitEnvironment(), "GIT_PROJECT_ROOT="+filepath.Dir(r.bare), "GIT_HTTP_EXPORT_ALL=1"),
	}
	r.server = &http.Server{Handler: backend, ReadHeaderTimeout: 10 * time.Second}
	r.URL = "http://" + listener.Addr().String() + "/fleet.git"
	go func() { _ = r.server.Serve(listener) }() // ends with Close
	return nil
}

// Close ends serving.
func (r *Repository) Close() { _ = r.server.Close() }

// gitEnvironment keeps the person's own settings out.
func gitEnvironment() []string {
	return []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + os.TempDir(), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null",
		"GIT_AUTHOR_NAME=fleet", "GIT_AUTHOR_EMAIL=fleet@example.com", "GIT_COMMITTER_NAME=fleet", "GIT_COMMITTER_EMAIL=fleet@example.com",
	}
}

// git runs a command in the working tree and returns what it says, trimmed.
func (r *Repository) git(ctx context.Context, args ...string) (string, error) {
	command := exec.CommandContext(ctx, "git", args...)
	command.Dir, command.Env = r.Dir, gitEnvironment()
	var problems bytes.Buffer
	command.Stderr = &problems
	answer, err := command.Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w: %s", args[0], err, strings.TrimSpace(problems.String()))
	}
	return strings.TrimSpace(string(answer)), nil
}

// Commit commits everything that has changed, and pushes it.
func (r *Repository) Commit(ctx context.Context, message string) error {
	for _, step := range [][]string{{"add", "--all"}, {"commit", "--quiet", "-m", message}, {"push", "--quiet", "origin", "main"}} {
		if _, err := r.git(ctx, step...); err != nil {
			return err
		}
	}
	return nil
}

// Revert takes the last commits back, the latest first, with a commit for each, and pushes it.
func (r *Repository) Revert(ctx context.Context, commits int) error {
	if _, err := r.git(ctx, "revert", "--no-edit", fmt.Sprintf("HEAD~%d..HEAD", commits)); err != nil {
		return err
	}
	_, err := r.git(ctx, "push", "--quiet", "origin", "main")
	return err
}

// Path is that of a file of the working tree.
func (r *Repository) Path(name string) string { return filepath.Join(r.Dir, filepath.FromSlash(name)) }

// Write writes a file.
func (r *Repository) Write(name, text string) error {
	if err := os.MkdirAll(filepath.Dir(r.Path(name)), 0o755); err != nil {
		return err
	}
	return os.WriteFile(r.Path(name), []byte(text), 0o644)
}

// Replace replaces parts of a file, old and new in turn; each must be in it.
func (r *Repository) Replace(name string, pairs ...string) error {
	content, err := os.ReadFile(r.Path(name))
	if err != nil {
		return err
	}
	text := string(content)
	for i := 0; i+1 < len(pairs); i += 2 {
		if !strings.Contains(text, pairs[i]) {
			return fmt.Errorf("%s does not hold %q", name, pairs[i])
		}
		text = strings.ReplaceAll(text, pairs[i], pairs[i+1])
	}
	return r.Write(name, text)
}

// Copy copies a folder, or one file, of this repository's checkout into the working tree.
func (r *Repository) Copy(from, to string) error {
	info, err := os.Stat(from)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		content, err := os.ReadFile(from)
		return errors.Join(err, r.Write(to, string(content)))
	}
	return filepath.WalkDir(from, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		relative, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		return r.Copy(path, filepath.ToSlash(filepath.Join(to, relative)))
	})
}
