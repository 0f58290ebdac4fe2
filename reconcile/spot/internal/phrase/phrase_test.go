package phrase

import "testing"

func TestOrdinalsAreReadOffNames(t *testing.T) {
	for name, want := range map[string]int{"db-0": 0, "db-12": 12, "a-b-3": 3, "db": -1, "db-": -1, "12": -1, "db-x1": -1, "db-99999999999": -1} {
		got, ok := Ordinal(name)
		if ok != (want >= 0) || (ok && got != want) {
			t.Errorf("%s: %d, %v", name, got, ok)
		}
	}
}
