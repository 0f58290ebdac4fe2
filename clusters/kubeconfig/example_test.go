package kubeconfig_test

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/plimsoll-dev/plimsoll/clusters/kubeconfig"
)

// uploaded is a kubeconfig as somebody has put it into a registration Secret.
const uploaded = `
apiVersion: v1
kind: Config
current-context: prod
contexts: [{name: prod, context: {cluster: prod, user: hub}}]
clusters: [{name: prod, cluster: {server: "https://192.0.2.1:6443"}}]
users: [{name: hub, user: {token: secret}}]
`

// A kubeconfig is taken apart, and only what the rules allow is used. The credentials are never printed.
func ExampleVet() {
	vetted, err := kubeconfig.Vet("prod-eu", []byte(uploaded), kubeconfig.Rules{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(vetted)

	// The configuration may name the networks in which members are.
	rules := kubeconfig.Rules{AllowedNetworks: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}}
	_, err = kubeconfig.Vet("prod-eu", []byte(uploaded), rules)
	if refused := (*kubeconfig.RefusedError)(nil); errors.As(err, &refused) {
		fmt.Println("refused")
	}
	// Output:
	// kubeconfig for 192.0.2.1:6443
	// refused
}
