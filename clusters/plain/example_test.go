package plain_test

import (
	"fmt"

	"github.com/plimsoll-dev/plimsoll/clusters/plain"
)

// What a member has said goes into logs and terminals. It cannot move the cursor, begin a line of its own, or fill the log.
func ExampleText() {
	fmt.Printf("%q\n", plain.Text("pods is \x1b[2Jforbidden", 100))
	fmt.Println(plain.Text("a message that is far too long", 9))
	// Output:
	// "pods is �[2Jforbidden"
	// a mess…
}
