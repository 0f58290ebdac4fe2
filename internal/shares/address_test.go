package shares

import (
	"testing"

	. "github.com/onsi/gomega"
)

// A subscriber has a whole network of IPv6, of 64 bits.
func TestConnectionsOfANetworkOfIPv6CountAsOfOneAddress(t *testing.T) {
	for text, want := range map[string]string{
		"10.0.0.1:5": "10.0.0.1", "[::ffff:10.0.0.1]:5": "10.0.0.1", "[2001:db8::1]:5": "2001:db8::", "[2001:db8::ffff:2]:5": "2001:db8::",
		"[2001:db8:0:1::1]:5": "2001:db8:0:1::", "[fe80::1%eth0]:5": "fe80::",
	} {
		NewWithT(t).Expect(Address(text).String()).To(Equal(want), text)
	}
}
