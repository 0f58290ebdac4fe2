package bodies_test

import (
	"fmt"

	"github.com/plimsoll-dev/plimsoll/clusters/bodies"
)

// Bodies that follow each other share memory; nothing of the one before is seen.
func ExamplePool() {
	var pool bodies.Pool
	first := pool.Get(1 << 20)
	first.WriteString("a large body")
	pool.Put(first)

	second := pool.Get(1 << 20)
	fmt.Println(second == first, second.Len(), second.Cap() >= 1<<20)
	// Output: true 0 true
}
