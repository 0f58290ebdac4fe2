package kube

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"
)

// identityPath is the object whose UID distinguishes one cluster from another.
const identityPath = "/api/v1/namespaces/kube-system"

// identity is the cluster UID that a proxy answers with; empty leaves the API server's own.
type identity string

// applies reports whether the answer to a request holds the UID.
func (i identity) applies(r *http.Request) bool {
	return i != "" && r.Method == http.MethodGet && r.URL.Path == identityPath
}

// ask has the API server answer in JSON, the one form that we can change.
func (i identity) ask(r *http.Request) {
	if !i.applies(r) {
		return
	}
	var kept []string
	for _, form := range strings.Split(strings.Join(r.Header.Values("Accept"), ","), ",") {
		// Parameters stay: they may ask for the metadata alone.
		if kind, _, err := mime.ParseMediaType(form); err == nil && kind == "application/json" {
			kept = append(kept, strings.TrimSpace(form))
		}
	}
	if len(kept) == 0 {
		kept = []string{"application/json"}
	}
	r.Header.Set("Accept", strings.Join(kept, ","))
	r.Header.Del("Accept-Encoding")
}

// answer puts our UID into the object. Refusals pass as they are.
func (i identity) answer(r *http.Response) error {
	if !i.applies(r.Request) || r.StatusCode != http.StatusOK {
		return nil
	}
	var object map[string]any
	decoder := json.NewDecoder(r.Body)
	decoder.UseNumber()
	if err := decoder.Decode(&object); err != nil {
		return fmt.Errorf("read the kube-system namespace: %w", err)
	}
	if metadata, ok := object["metadata"].(map[string]any); ok {
		metadata["uid"] = string(i)
	}
	content, err := json.Marshal(object)
	if err != nil {
		return fmt.Errorf("write the kube-system namespace: %w", err)
	}
	_ = r.Body.Close()
	r.Body = io.NopCloser(bytes.NewReader(content))
	r.ContentLength = int64(len(content))
	r.Header.Set("Content-Length", strconv.Itoa(len(content)))
	return nil
}
