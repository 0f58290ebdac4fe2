package page

import (
	"embed"
	"fmt"
	"io/fs"
	"net/http"
	"path"
	"strings"

	"github.com/plimsoll-dev/plimsoll/hub/internal/stored"
)

// Path is where the page is served, beside the REST API. It ends with a slash.
const Path = "/ui/"

//go:embed assets
var assets embed.FS

// policy lets the page load what the hub serves, talk to the hub, and nothing else: no inline script or style, no eval, no frame, no
// form that a browser sends by itself. With Trusted Types nothing can be turned into markup, even by mistake.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// headers are those of every answer.
var headers = map[string]string{
	"Content-Security-Policy":      policy,
	"X-Content-Type-Options":       "nosniff",
	"X-Frame-Options":              "DENY",
	"Referrer-Policy":              "no-referrer",
	"Cross-Origin-Opener-Policy":   "same-origin",
	"Cross-Origin-Resource-Policy": "same-origin",
	"Permissions-Policy":           "camera=(), geolocation=(), microphone=()",
}

// types are the content types by extension; an asset of another one is refused when the handler is made.
var types = map[string]string{
	".css":  "text/css; charset=utf-8",
	".html": "text/html; charset=utf-8",
	".js":   "text/javascript; charset=utf-8",
	".svg":  "image/svg+xml",
}

// index is served for [Path] itself.
const index = "index.html"

// Handler serves the page below [Path], and redirects "/" and the path without its slash there. It answers GET and HEAD only, keeps no
// state and may be used concurrently.
type Handler struct {
	assets map[string]*stored.Content
}

// New reads and compresses the embedded files. It fails only where they are not what a build must contain.
func New() (*Handler, error) { return newHandler(assets) }

func newHandler(files fs.FS) (*Handler, error) {
	h := &Handler{assets: map[string]*stored.Content{}}
	err := fs.WalkDir(files, "assets", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		body, err := fs.ReadFile(files, name)
		if err != nil {
			return err
		}
		contentType, ok := types[path.Ext(name)]
		if !ok {
			return fmt.Errorf("%s: the extension must be one of those that have a content type", name)
		}
		content, err := stored.New(contentType, body)
		h.assets[strings.TrimPrefix(name, "assets/")] = content
		return err
	})
	if _, ok := h.assets[index]; err == nil && !ok {
		err = fmt.Errorf("there is no %s", index)
	}
	if err != nil {
		return nil, fmt.Errorf("web page: %w", err)
	}
	return h, nil
}

// Serves reports whether a request is for the page, whatever its method.
func (*Handler) Serves(r *http.Request) bool {
	return r.URL.Path == "/" || r.URL.Path == strings.TrimSuffix(Path, "/") || strings.HasPrefix(r.URL.Path, Path)
}

// ServeHTTP implements [http.Handler].
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	for name, value := range headers {
		w.Header().Set(name, value)
	}
	w.Header().Set("Cache-Control", "no-store")
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "the page takes GET and HEAD", http.StatusMethodNotAllowed)
		return
	}
	name, below := strings.CutPrefix(r.URL.Path, Path)
	if !below {
		// Relative, so that it stays below the prefix of a proxy.
		w.Header().Set("Location", strings.TrimPrefix(Path, "/"))
		w.WriteHeader(http.StatusFound)
		return
	}
	if name == "" {
		name = index
	}
	found, ok := h.assets[name]
	if !ok {
		http.Error(w, "the page has no such file", http.StatusNotFound)
		return
	}
	found.Send(w, r)
}
