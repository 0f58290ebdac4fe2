// Package stored answers with what is the same for everybody, from memory: as it is, compressed, or with a word that the caller has it
// (stored.go).
package stored

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// Content is one text as it is sent. Safe for concurrent use.
type Content struct {
	contentType   string
	plain, zipped representation
}

// representation is what is sent, and its strong validator.
type representation struct {
	body []byte
	etag string
}

// New compresses body, which must not be changed from then on.
func New(contentType string, body []byte) (*Content, error) {
	zipped, err := compress(body)
	if err != nil {
		return nil, fmt.Errorf("compress: %w", err)
	}
	return &Content{contentType, represent(body), represent(zipped)}, nil
}

func represent(body []byte) representation {
	sum := sha256.Sum256(body)
	return representation{body, `"` + hex.EncodeToString(sum[:12]) + `"`}
}

func compress(body []byte) ([]byte, error) {
	var into bytes.Buffer
	w, err := gzip.NewWriterLevel(&into, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(body); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return into.Bytes(), nil
}

// Plain is the body as it is. It must not be changed.
func (c *Content) Plain() []byte { return c.plain.body }

// Send answers a GET or HEAD with the content, in one write, or with 304 where the caller has it. A caller asks each time, so that it never
// takes what a hub of another version served for that of this one.
func (c *Content) Send(w http.ResponseWriter, r *http.Request) {
	chosen := c.plain
	w.Header().Set("Vary", "Accept-Encoding")
	w.Header().Set("Cache-Control", "no-cache")
	if takesGzip(r.Header.Get("Accept-Encoding")) {
		chosen = c.zipped
		w.Header().Set("Content-Encoding", "gzip")
	}
	w.Header().Set("ETag", chosen.etag)
	if matches(r.Header.Get("If-None-Match"), chosen.etag) {
		w.Header().Del("Content-Encoding")
		w.WriteHeader(http.StatusNotModified)
		return
	}
	w.Header().Set("Content-Type", c.contentType)
	w.Header().Set("Content-Length", strconv.Itoa(len(chosen.body)))
	if r.Method == http.MethodHead {
		return
	}
	_, _ = w.Write(chosen.body) // a caller who has gone is no concern of ours
}

// takesGzip reads an Accept-Encoding header; a coding with q=0 is refused.
func takesGzip(header string) bool {
	return slices.ContainsFunc(strings.Split(header, ","), func(item string) bool {
		coding, parameter, _ := strings.Cut(item, ";")
		quality, given := strings.CutPrefix(strings.TrimSpace(parameter), "q=")
		weight, err := strconv.ParseFloat(quality, 64)
		return strings.TrimSpace(coding) == "gzip" && (!given || err == nil && weight > 0)
	})
}

// matches compares a validator with those of an If-None-Match header, weakly as RFC 9110 asks.
func matches(header, etag string) bool {
	return slices.ContainsFunc(strings.Split(header, ","), func(item string) bool {
		item = strings.TrimSpace(item)
		return item == "*" || strings.TrimPrefix(item, "W/") == etag
	})
}
