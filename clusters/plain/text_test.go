package plain

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestTextIsOneBoundedLineWithoutControlCharacters(t *testing.T) {
	for name, c := range map[string]struct {
		text  string
		limit int
		want  string
	}{
		"plain":            {"all is well", 20, "all is well"},
		"as long as may":   {"12345", 5, "12345"},
		"too long":         {"123456789", 8, "12345…"},
		"within a rune":    {"1234ü6789", 8, "1234…"},
		"line breaks":      {"a\nb\r\tc", 20, "a b  c"},
		"a second line":    {"ok\n{\"level\":\"ERROR\"}", 40, "ok {\"level\":\"ERROR\"}"},
		"terminal":         {"\x1b[2Jgone\x07", 20, "�[2Jgone�"},
		"C1":               {"a\u009b31mb", 20, "a�31mb"},
		"direction":        {"exe\u202etxt.\u2066", 20, "exe�txt.�"},
		"separators":       {"a\u2028b\u2029c", 20, "a�b�c"},
		"no UTF-8":         {"a\xff\xfeb", 20, "a��b"},
		"grows when clean": {"\x00\x00\x00\x00", 4, "…"},
		"no limit":         {"abcd", 0, "…"},
		"other languages":  {"größer 大きい", 30, "größer 大きい"},
	} {
		if got := Text(c.text, c.limit); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func FuzzText(f *testing.F) {
	f.Add("a\nb", 3)
	f.Add(strings.Repeat("\xff", 100), 10)
	f.Fuzz(func(t *testing.T, text string, limit int) {
		limit %= 1 << 12
		got := Text(text, limit)
		if len(got) > max(limit, len(ellipsis)) || !utf8.ValidString(got) || strings.ContainsFunc(got, harmful) {
			t.Fatalf("%q is not plain: %q", text, got)
		}
		if again := Text(got, limit); again != got {
			t.Fatalf("%q is not plain the second time: %q", got, again)
		}
	})
}
