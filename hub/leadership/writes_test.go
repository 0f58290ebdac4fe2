package leadership

import "testing"

func TestWritesAreCountedByMember(t *testing.T) {
	w := newWrites()
	begin := func(member string) func() {
		ended, ok := w.begin(member)
		if !ok {
			t.Fatalf("no write to %s may begin", member)
		}
		return ended
	}
	quiet := func(c <-chan struct{}) bool {
		select {
		case <-c:
			return true
		default:
			return false
		}
	}
	a1, a2, b := begin("a"), begin("a"), begin("b")
	ended := w.stop("a")
	if _, ok := w.begin("a"); ok {
		t.Error("a write to a began, though a is handed over")
	}
	if a1(); quiet(ended) {
		t.Error("a is quiet while a write to it is under way")
	}
	if a2(); !quiet(ended) {
		t.Error("a is not quiet though no write to it is under way; one to b is")
	}
	begin("b")()
	all := w.stopAll()
	if _, ok := w.begin("c"); ok || quiet(all) {
		t.Error("a write began, or all are said to have ended while one to b is under way")
	}
	if b(); !quiet(all) || !quiet(w.stop("c")) {
		t.Error("it is not quiet though no write is under way")
	}
}
