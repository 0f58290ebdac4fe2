package intake

import (
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
)

const (
	// maxRatio is how many bytes of an answer a compressed byte may represent. Lists of real objects stay below a fiftieth;
	// the format allows for a thousand.
	maxRatio = 100
	// anyRatio is how many bytes an answer may have whatever its ratio.
	anyRatio = 1 << 20
	// mostZipped is how many bytes a compressed answer may have beside as many as it stands for: what cannot be compressed grows by a
	// thousandth. Empty blocks stand for nothing, so no limit of what was decompressed ends them.
	mostZipped = 128 << 10
)

// Unzipped asks for compressed answers and decompresses them, as [http.Transport] would, and ends those that are compressed
// more than real answers are. Requests that say themselves what they accept are left alone.
func Unzipped(next http.RoundTripper) http.RoundTripper {
	return RoundTripper(func(req *http.Request) (*http.Response, error) {
		if req.Header.Get("Accept-Encoding") != "" || req.Header.Get("Range") != "" || req.Method == http.MethodHead {
			return next.RoundTrip(req)
		}
		req = req.Clone(req.Context())
		req.Header.Set("Accept-Encoding", "gzip")
		resp, err := next.RoundTrip(req)
		if err != nil || !strings.EqualFold(resp.Header.Get("Content-Encoding"), "gzip") {
			return resp, err
		}
		resp.Header.Del("Content-Encoding")
		resp.Header.Del("Content-Length")
		resp.ContentLength, resp.Uncompressed = -1, true
		resp.Body = &unzippedBody{wire: countedBody{ReadCloser: resp.Body}}
		return resp, nil
	})
}

// unzippedBody is a decompressed body.
type unzippedBody struct {
	wire countedBody
	zip  *gzip.Reader
	read int64 // bytes after decompression
	err  error
}

// Read decompresses. After an answer was refused, or could not be decompressed, it keeps failing.
func (b *unzippedBody) Read(p []byte) (n int, err error) {
	if b.err != nil {
		return 0, b.err
	}
	b.wire.most = b.read + mostZipped
	if b.zip == nil {
		if b.zip, b.err = gzip.NewReader(&b.wire); b.err != nil {
			b.err = unzipError(b.err)
			return 0, b.err
		}
	}
	n, b.err = b.zip.Read(p)
	b.err = unzipError(b.err)
	if b.read += int64(n); b.read > anyRatio && b.read > maxRatio*b.wire.read {
		n, b.err = 0, fmt.Errorf("%w: one byte of it stands for more than %d", ErrTooLarge, maxRatio)
	}
	return n, b.err
}

// Close closes the connection's body.
func (b *unzippedBody) Close() error { return b.wire.Close() }

// unzipError marks what cannot be decompressed as unreadable; errors of the connection stay as they are.
func unzipError(err error) error {
	if errors.Is(err, gzip.ErrHeader) || errors.Is(err, gzip.ErrChecksum) {
		return fmt.Errorf("%w: %w", ErrUnreadable, err)
	}
	return err
}

// countedBody counts what was read, and fails when that is more than most.
type countedBody struct {
	io.ReadCloser
	read, most int64
}

func (c *countedBody) Read(p []byte) (int, error) {
	if c.read > c.most {
		return 0, fmt.Errorf("%w: compressed, it has %d bytes more than what it stands for", ErrUnreadable, mostZipped)
	}
	n, err := c.ReadCloser.Read(p)
	c.read += int64(n)
	return n, err
}
