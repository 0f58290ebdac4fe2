package stored

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
)

// oneWrite is an answer that counts how often it is written.
type oneWrite struct {
	*httptest.ResponseRecorder
	writes int
}

func (w *oneWrite) Write(body []byte) (int, error) {
	w.writes++
	return w.ResponseRecorder.Write(body)
}

func send(t *testing.T, method, coding, etag string) *oneWrite {
	t.Helper()
	content, err := New("text/plain", text)
	if err != nil {
		t.Fatal(err)
	}
	request := httptest.NewRequestWithContext(t.Context(), method, "/", nil)
	request.Header.Set("Accept-Encoding", coding)
	request.Header.Set("If-None-Match", etag)
	answer := &oneWrite{ResponseRecorder: httptest.NewRecorder()}
	content.Send(answer, request)
	return answer
}

var text = []byte(strings.Repeat("text ", 1000))

func TestContentIsCompressedForThoseWhoTakeIt(t *testing.T) {
	for header, want := range map[string]string{
		"": "", "gzip": "gzip", "br, gzip;q=0.5": "gzip", "gzip;q=0": "", "deflate": "", "GZIP": "", "gzip;q=x": "", "gzip; q=1.0": "gzip",
	} {
		answer := send(t, http.MethodGet, header, "")
		if got := answer.Header().Get("Content-Encoding"); got != want {
			t.Errorf("Accept-Encoding %q: sent as %q, want %q", header, got, want)
		}
		if answer.writes != 1 || answer.Header().Get("Content-Length") != strconv.Itoa(answer.Body.Len()) {
			t.Errorf("Accept-Encoding %q: %d bytes in %d writes, with headers %v", header, answer.Body.Len(), answer.writes, answer.Header())
		}
		body := io.Reader(answer.Body)
		if want == "gzip" {
			var err error
			if body, err = gzip.NewReader(body); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := io.ReadAll(body); err != nil || !bytes.Equal(got, text) {
			t.Errorf("Accept-Encoding %q: %d bytes, %v", header, len(got), err)
		}
	}
}

func TestContentThatACallerHasIsNotSent(t *testing.T) {
	for _, coding := range []string{"", "gzip"} {
		etag := send(t, http.MethodGet, coding, "").Header().Get("Etag")
		for sent, want := range map[string]int{etag: http.StatusNotModified, "W/" + etag: http.StatusNotModified, `"other"`: http.StatusOK, "": http.StatusOK} {
			if answer := send(t, http.MethodGet, coding, sent); answer.Code != want || (answer.writes == 0) != (want == http.StatusNotModified) {
				t.Errorf("coding %q, If-None-Match %s: status %d in %d writes", coding, sent, answer.Code, answer.writes)
			}
		}
		if answer := send(t, http.MethodHead, coding, ""); answer.writes > 0 || answer.Header().Get("Etag") != etag {
			t.Errorf("HEAD: %d writes, with headers %v", answer.writes, answer.Header())
		}
	}
}
