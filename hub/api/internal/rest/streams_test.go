package rest

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// deadlines is a connection that counts how often the deadline for reading it is lifted.
type deadlines struct {
	*httptest.ResponseRecorder
	lifted int
}

func (d *deadlines) SetReadDeadline(at time.Time) error {
	if at.IsZero() {
		d.lifted++
	}
	return nil
}

func (*deadlines) SetWriteDeadline(time.Time) error { return nil }

// Whoever sends a watch a body, byte by byte, must not keep the connection for ever: nobody has looked at a token yet.
func TestOnlyAWatchWithoutABodyMayBeReadForEver(t *testing.T) {
	const watch = "/v1/objects:watch"
	for name, c := range map[string]struct {
		method, path string
		body         io.Reader
		want         int
	}{
		"a watch":                               {http.MethodGet, watch, nil, 1},
		"a watch with a body":                   {http.MethodGet, watch, strings.NewReader("{}"), 0},
		"a watch with a body of unknown length": {http.MethodGet, watch, io.MultiReader(strings.NewReader("{}")), 0},
		"a method that no watch has":            {http.MethodPost, watch, nil, 0},
		"no watch":                              {http.MethodGet, "/v1/objects", nil, 0},
	} {
		w := &deadlines{ResponseRecorder: httptest.NewRecorder()}
		openEnded(w, httptest.NewRequestWithContext(t.Context(), c.method, c.path, c.body), time.Minute)
		if w.lifted != c.want {
			t.Errorf("%s: the deadline is lifted %d times, want %d", name, w.lifted, c.want)
		}
	}
}
