package proc

import (
	"bytes"
	"fmt"
	"os"
)

// tailLines is how many lines of a log go into an error.
const tailLines = 20

// Tail is the end of a log: at most so many lines. Of a file that cannot be read it is empty.
func Tail(file string, lines int) string {
	content, err := os.ReadFile(file)
	if err != nil {
		return ""
	}
	all := bytes.Split(bytes.TrimSpace(content), []byte("\n"))
	return string(bytes.Join(all[max(len(all)-lines, 0):], []byte("\n")))
}

// quote is the end of an error: where the log is, and how it ends.
func (p *Process) quote() string {
	if p.log == "" {
		return ""
	}
	if said := Tail(p.log, tailLines); said != "" {
		return fmt.Sprintf("; %s ends with:\n%s", p.log, said)
	}
	return fmt.Sprintf("; %s is empty", p.log)
}
