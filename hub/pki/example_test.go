package pki_test

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/plimsoll-dev/plimsoll/hub/pki"
)

// All replicas of a hub share one authority, whichever comes first.
func ExampleEnsureCA() {
	hubCluster := fake.NewClientBuilder().Build()
	first, err := pki.EnsureCA(context.Background(), hubCluster, "plimsoll-system", "plimsoll-hub-ca")
	if err != nil {
		fmt.Println(err)
		return
	}
	second, err := pki.EnsureCA(context.Background(), hubCluster, "plimsoll-system", "plimsoll-hub-ca")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("one authority:", string(first.Bundle()) == string(second.Bundle()))
	// Output: one authority: true
}
