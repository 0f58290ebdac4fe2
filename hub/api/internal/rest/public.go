package rest

import (
	"errors"
	"net"
	"net/http"
	"sync"

	"github.com/plimsoll-dev/plimsoll/hub/internal/stored"
	"github.com/plimsoll-dev/plimsoll/internal/shares"
	plimsollv1 "github.com/plimsoll-dev/plimsoll/proto/plimsoll/v1"
)

// Where the descriptions of the REST side are served, without authentication: OpenAPI 2, and 3 with examples.
const openAPIPath, openAPIv3Path = "/openapi.json", "/openapi.v3.json"

// documents are the descriptions by path.
type documents map[string]*stored.Content

// openAPI compresses the descriptions, once for all servers.
var openAPI = sync.OnceValues(func() (documents, error) {
	all := documents{}
	for path, text := range map[string][]byte{openAPIPath: plimsollv1.OpenAPI, openAPIv3Path: plimsollv1.OpenAPIv3} {
		content, err := stored.New("application/json", text)
		if err != nil {
			return nil, err
		}
		all[path] = content
	}
	return all, nil
})

// serves reports whether a request is for one of them.
func (d documents) serves(r *http.Request) bool {
	return d[r.URL.Path] != nil && (r.Method == http.MethodGet || r.Method == http.MethodHead)
}

// ServeHTTP implements [http.Handler].
func (d documents) ServeHTTP(w http.ResponseWriter, r *http.Request) { d[r.URL.Path].Send(w, r) }

// publicWriter sends what needs no token. Such a call is refused to nobody, so what is sent has to cost a stranger as much as sending it
// costs the hub.
type publicWriter struct {
	http.ResponseWriter
	to net.Addr
}

// toAnybody is for answers that are each one write.
func toAnybody(w http.ResponseWriter, r *http.Request) http.ResponseWriter {
	return publicWriter{w, shares.Caller(r.Context())}
}

var errTooMuch = errors.New("the connection has asked for more than strangers are sent")

// Write implements [http.ResponseWriter].
func (w publicWriter) Write(body []byte) (int, error) {
	if !shares.MaySend(w.to, len(body)) {
		return 0, errTooMuch
	}
	return w.ResponseWriter.Write(body)
}

// Unwrap is for [http.ResponseController].
func (w publicWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
