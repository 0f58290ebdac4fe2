package phrase

import (
	"fmt"
	"strings"

	"github.com/plimsoll-dev/plimsoll/clusters/plain"
)

// Value cuts a value that a stranger wrote to what fits into a message.
func Value(value string) string { return Line(value, 64) }

// Line makes a text that a stranger wrote one line of at most so many bytes.
func Line(value string, limit int) string { return plain.Text(value, limit) }

// Count returns a number with its noun: one, and many unless an s makes it.
func Count(n int, one string, many ...string) string {
	switch {
	case n == 1:
		return "1 " + one
	case len(many) > 0:
		return fmt.Sprintf("%d %s", n, many[0])
	}
	return fmt.Sprintf("%d %ss", n, one)
}

// Sentence makes a sentence of a text: it begins with a capital and ends with a full stop.
func Sentence(text string) string {
	if text == "" {
		return ""
	}
	return strings.ToUpper(text[:1]) + text[1:] + "."
}

// maxOrdinal is the highest ordinal that is read; StatefulSets of more replicas are not known to exist.
const maxOrdinal = 1 << 30

// Ordinal returns the number at the end of the name of a StatefulSet's pod.
func Ordinal(name string) (int, bool) {
	start := len(name)
	for start > 0 && name[start-1] >= '0' && name[start-1] <= '9' {
		start--
	}
	if start == 0 || name[start-1] != '-' {
		return 0, false
	}
	return Number(name[start:], maxOrdinal)
}

// Number reads decimal digits only: no sign, no exponent, no separators.
func Number(value string, limit int) (int, bool) {
	if value == "" || len(value) > 9 {
		return 0, false
	}
	n := 0
	for i := range len(value) {
		digit := value[i] - '0'
		if digit > 9 {
			return 0, false
		}
		n = n*10 + int(digit)
	}
	return n, n <= limit
}
