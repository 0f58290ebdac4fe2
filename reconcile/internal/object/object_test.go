package object_test

import (
	"strings"
	"testing"
	"unicode"

	"pgregory.net/rapid"

	"github.com/plimsoll-dev/plimsoll/reconcile/internal/object"
)

func TestAClippedTextIsValidAndShort(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := strings.Repeat(rapid.StringOfN(rapid.RuneFrom(nil, unicode.L, unicode.N, unicode.P), 1, 20, -1).Draw(rt, "s"), rapid.IntRange(1, 400).Draw(rt, "n"))
		got := object.Clip(s)
		if len(got) > object.MaxText || (len(s) <= object.MaxText) != (got == s) || !strings.HasPrefix(s, strings.TrimSuffix(got, "…")) {
			rt.Fatalf("clip of %d bytes gives %d: %q", len(s), len(got), got)
		}
	})
}
