package plain

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

const ellipsis = "…"

// Text returns text as one line of at most limit bytes. Line breaks and tabs become spaces. Other control characters, those that
// change the direction of what follows or cannot be seen, and bytes that are no UTF-8 become U+FFFD. What is longer ends with an
// ellipsis; a limit below its three bytes counts as three. The result holds no memory of a longer text.
func Text(text string, limit int) string {
	limit = max(limit, len(ellipsis))
	if len(text) <= limit && !strings.ContainsFunc(text, harmful) && utf8.ValidString(text) {
		return text
	}
	var line strings.Builder
	end := 0 // of what fits beside an ellipsis
	for _, r := range text {
		switch {
		case r == '\n' || r == '\r' || r == '\t':
			r = ' '
		case harmful(r):
			r = utf8.RuneError
		}
		if line.Len()+utf8.RuneLen(r) > limit {
			return line.String()[:end] + ellipsis
		}
		line.WriteRune(r)
		if line.Len() <= limit-len(ellipsis) {
			end = line.Len()
		}
	}
	return line.String()
}

// harmful reports whether a character is more than a mark on the line: C0 and C1 controls, line and paragraph separators, and
// formatting characters, such as those that reverse the direction of text.
func harmful(r rune) bool {
	return unicode.IsControl(r) || unicode.In(r, unicode.Zl, unicode.Zp, unicode.Cf, unicode.Co)
}
