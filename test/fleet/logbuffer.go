package fleet

import (
	"bytes"
	"strings"
	"sync"
)

// A LogBuffer keeps a log that several goroutines write, to be read when a test fails. The zero value is empty.
type LogBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write takes what a logger writes.
func (l *LogBuffer) Write(text []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(text)
}

// String is the whole log so far.
func (l *LogBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// Tail is the end of the log: at most so many lines.
func (l *LogBuffer) Tail(lines int) string {
	all := strings.Split(strings.TrimSpace(l.String()), "\n")
	return strings.Join(all[max(len(all)-lines, 0):], "\n")
}
