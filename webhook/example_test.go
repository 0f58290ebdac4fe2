package webhook_test

import (
	"bytes"
	"fmt"

	"github.com/plimsoll-dev/plimsoll/clusters"
	"github.com/plimsoll-dev/plimsoll/webhook"
)

// Each member has a token of its own in the URL of its webhook. It follows from the registration, so nothing is stored.
func ExampleTokens() {
	registered := map[string]clusters.Registration{
		"prod-eu": {Namespace: "plimsoll-members", Name: "prod-eu", UID: "1"},
		"prod-us": {Namespace: "plimsoll-members", Name: "prod-us", UID: "2"},
	}
	key := bytes.Repeat([]byte{7}, 32) // of the hub; random
	tokens := webhook.NewTokens(key, func(member string) (clusters.Registration, bool) {
		registration, ok := registered[member]
		return registration, ok
	})
	token, err := tokens.Current("prod-eu")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("its own:", tokens.Verify("prod-eu", token))
	fmt.Println("another member's:", tokens.Verify("prod-us", token))
	fmt.Println("for calls of another kind:", tokens.For(webhook.ForConversions).Verify("prod-eu", token))
	delete(registered, "prod-eu")
	fmt.Println("of a member that has left:", tokens.Verify("prod-eu", token))
	// Output:
	// its own: true
	// another member's: false
	// for calls of another kind: false
	// of a member that has left: false
}

// The address at which members reach the hub.
func ExampleParseBaseURL() {
	base, err := webhook.ParseBaseURL("https://plimsoll-hub.plimsoll-system.svc:8443")
	fmt.Println(base.Host, err)
	fmt.Println("only the hub's own cluster resolves it:", webhook.ClusterLocal(base))
	_, err = webhook.ParseBaseURL("http://hub.example.com")
	fmt.Println(err)
	// Output:
	// plimsoll-hub.plimsoll-system.svc:8443 <nil>
	// only the hub's own cluster resolves it: true
	// webhook URL "http://hub.example.com": must be https://host[:port]
}
