package kubeconfig

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
)

// Rules say what a registration Secret may ask of the hub. The zero value allows inline credentials and HTTPS servers
// anywhere but on the hub's own machine and link, and nothing else.
type Rules struct {
	// AllowExec lets a kubeconfig name a program that the hub runs to get credentials. Whoever may write registration
	// Secrets may then run code in the hub.
	AllowExec bool
	// AllowFiles lets a kubeconfig name files of the hub: certificate-authority, client-certificate, client-key and
	// tokenFile. Whoever may write registration Secrets may then send those files to a server of their choice.
	AllowFiles bool
	// AllowProxy lets a kubeconfig name a proxy-url. The proxy's address is checked like a server's; what lies behind it
	// cannot be.
	AllowProxy bool
	// AllowInsecure accepts insecure-skip-tls-verify and http:// servers.
	AllowInsecure bool
	// AllowImpersonation accepts as, as-uid, as-groups and as-user-extra.
	AllowImpersonation bool
	// AllowBasicAuth accepts username and password.
	AllowBasicAuth bool
	// AllowedNetworks are the networks in which servers and proxies may be; it is checked when dialling, after names were
	// resolved. Empty: anywhere but loopback, link-local (which holds the metadata services of clouds), multicast,
	// broadcast and unspecified addresses. Link-local addresses and metadata services are allowed only by a network that is
	// link-local, or that is the one address: somebody who lists a large network does not mean them.
	AllowedNetworks []netip.Prefix
}

// Prefixes of IPv6 addresses that carry an IPv4 address, from the byte given on: RFC 6052 (NAT64), RFC 4291 (IPv4-compatible),
// RFC 2765 (IPv4-translated) and RFC 3056 (6to4). They must not be a way around the rules for what they carry.
var carriers = []struct {
	prefix netip.Prefix
	from   int
}{
	{netip.MustParsePrefix("64:ff9b::/96"), 12},
	{netip.MustParsePrefix("::/96"), 12},
	{netip.MustParsePrefix("::ffff:0:0:0/96"), 12},
	{netip.MustParsePrefix("2002::/16"), 2},
}

// localNAT64 is for translation that a network sets up for itself (RFC 8215): where in it an IPv4 address stands is not known.
var localNAT64 = netip.MustParsePrefix("64:ff9b:1::/48")

// metadata are the services of clouds that are not link-local and say to any caller what their machines may do.
var metadata = []netip.Addr{
	netip.MustParseAddr("fd00:ec2::254"),   // AWS
	netip.MustParseAddr("fd00:ec2::23"),    // AWS, credentials of pods
	netip.MustParseAddr("fd20:ce::254"),    // Google Cloud
	netip.MustParseAddr("100.100.100.200"), // Alibaba Cloud
	netip.MustParseAddr("168.63.129.16"),   // Azure
	netip.MustParseAddr("192.0.0.192"),     // Oracle Cloud
	netip.MustParseAddr("fd00:42::42"),     // Scaleway
}

// checkAddr returns an error that names the address and the rule when the hub may not connect to ip.
func (r Rules) checkAddr(ip netip.Addr) error {
	ip = ip.Unmap().WithZone("")
	if len(r.AllowedNetworks) > 0 {
		for _, network := range r.AllowedNetworks {
			if network.Contains(ip) && (!mayBeMetadata(ip) || network.IsSingleIP() || network.Addr().IsLinkLocalUnicast()) {
				return nil
			}
		}
		if mayBeMetadata(ip) {
			return &AddrError{ip, "link-local and metadata addresses are allowed only by a network of their own"}
		}
		return &AddrError{ip, "it is in none of the allowed networks"}
	}
	if kind := cmp.Or(unroutable(ip), unroutable(carried(ip))); kind != "" {
		return &AddrError{ip, kind + " addresses are not allowed, unless they are listed in the allowed networks"}
	}
	return nil
}

// mayBeMetadata reports whether an address, or the one in it, may be a metadata service.
func mayBeMetadata(ip netip.Addr) bool {
	return unroutable(ip) == linkLocal || unroutable(carried(ip)) == linkLocal
}

// carried is the IPv4 address in ip, or ip itself.
func carried(ip netip.Addr) netip.Addr {
	for _, carrier := range carriers {
		if carrier.prefix.Contains(ip) {
			b := ip.As16()
			return netip.AddrFrom4([4]byte(b[carrier.from : carrier.from+4]))
		}
	}
	return ip
}

// linkLocal is the kind of addresses among which metadata services are.
const linkLocal = "link-local and metadata"

// unroutable names the kind of address that never is a member's API server, or "".
func unroutable(ip netip.Addr) string {
	switch {
	case !ip.IsValid():
		return "invalid"
	case ip.IsUnspecified(), ip.Is4() && ip.As4()[0] == 0:
		return "unspecified"
	case ip.IsLoopback():
		return "loopback"
	case ip.IsLinkLocalUnicast(), slices.Contains(metadata, ip), localNAT64.Contains(ip):
		return linkLocal
	case ip.IsMulticast():
		return "multicast"
	case ip == netip.AddrFrom4([4]byte{255, 255, 255, 255}):
		return "broadcast"
	}
	return ""
}

// AddrError says that an address may not be connected to, and by which rule.
type AddrError struct {
	Addr netip.Addr
	Rule string
}

// Refusal is the error in words that anybody may read.
func (e *AddrError) Refusal() string { return e.Error() }

func (e *AddrError) Error() string { return fmt.Sprintf("address %s: %s", e.Addr, e.Rule) }
