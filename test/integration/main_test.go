package integration

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"testing"
)

// A lane is what tests go on in side by side, as many at a time as it is wide. They wait for control planes more than they
// compute; too many at once starve control planes that are just starting, and what is found out by time-outs is wrong.
type lane chan struct{}

var (
	// fleets are the tests that start clusters of their own, which take up to 4 GB of memory for each test.
	fleets = make(lane, min(max(2, runtime.NumCPU()), 4))
	// specs are the tests that share the clusters and the hub of the one that they are part of.
	specs = make(lane, 2*cap(fleets))
)

// beside has a test go on beside others, when there is room in the lane. Call it first, once in a test.
func (l lane) beside(t *testing.T) {
	t.Helper()
	t.Parallel()
	l <- struct{}{}
	t.Cleanup(func() { <-l }) // the last thing that happens in the test, after all that run within it
}

func TestMain(m *testing.M) {
	flag.Parse()
	// The lanes alone say how many go on at a time: a test that waits for room must not take the place, in go test's own
	// count, of those that it waits for.
	if err := flag.Set("test.parallel", "1000"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	os.Exit(m.Run())
}
