package sample

import (
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// Zipped answers a list with text in gzip.
func Zipped(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		_, _ = io.WriteString(z, text)
		_ = z.Close()
	}
}

// Varied is text of numbers, which compresses as lists of objects do.
func Varied(size int) string {
	var text strings.Builder
	for i := 0; text.Len() < size; i++ {
		fmt.Fprintf(&text, `{"metadata":{"name":"web-%d","uid":"%x"}},`, i, i*7919)
	}
	return text.String()
}
