package module

import (
	"strings"
	"testing"
)

func TestWhatAResourceLacksIsNamedInOneOrder(t *testing.T) {
	for range 20 { // a map's order differs sooner
		err := (&Resource{Plural: "shops"}).validate()
		if err == nil {
			t.Fatal("it lacks nothing")
		}
		var at []int
		for _, what := range []string{"Title", "Group", "Kind", "no versions"} {
			at = append(at, strings.Index(err.Error(), what))
		}
		for i := range at {
			if at[i] < 0 || i > 0 && at[i] < at[i-1] {
				t.Fatalf("found at %v of %v", at, err)
			}
		}
	}
}

func TestALabelThatNoPodCanHaveIsRefused(t *testing.T) {
	for label, valid := range map[string]bool{"": true, "example.com/shop": true, `"] + ["`: false, "example.com/": false} {
		err := (&Resource{Plural: "shops", Label: label}).validate()
		if named := strings.Contains(err.Error(), "Label"); named == valid {
			t.Errorf("Label %q: %v", label, err)
		}
	}
}
