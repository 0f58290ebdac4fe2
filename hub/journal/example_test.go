package journal_test

import (
	"fmt"

	"github.com/plimsoll-dev/plimsoll/hub/journal"
)

// A client reads the events of a member page by page, each behind the last event of the page before.
func ExampleJournal_List() {
	events := journal.New(journal.Limits{})
	for _, name := range []string{"cart", "checkout", "search"} {
		events.Add(journal.Event{Type: journal.Move, Member: "prod-eu", Namespace: "shop", Kind: "Deployment", Name: name})
	}
	events.Add(journal.Event{Type: journal.Interruption, Member: "prod-us", Subject: "node-7"})

	behind, more := "", true
	for more {
		var page []journal.Event
		page, more = events.List("prod-eu", "shop", behind, 2)
		for _, e := range page {
			fmt.Println(e.Type, e.Name)
			behind = e.ID
		}
		fmt.Println("more:", more)
	}
	// Output:
	// Move cart
	// Move checkout
	// more: true
	// Move search
	// more: false
}
