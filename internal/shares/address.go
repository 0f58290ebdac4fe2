package shares

import "net/netip"

// Address is the caller's address in the text of an address with its port, as of [net.Conn] and [http.Request]; the zero value where the
// text has none. Whoever has one IPv6 address has all of its network of 64 bits, which counts as one.
func Address(text string) netip.Addr {
	remote, err := netip.ParseAddrPort(text)
	if err != nil {
		return netip.Addr{}
	}
	address := remote.Addr().Unmap().WithZone("")
	if address.Is6() {
		network, _ := address.Prefix(64) // fails for more than 128 bits only
		address = network.Addr()
	}
	return address
}
