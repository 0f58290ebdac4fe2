package clusters

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"syscall"
	"time"
)

// dialTimeout bounds name resolution and connecting.
const dialTimeout = 5 * time.Second

// dialer connects only to addresses that rules allow. The check is made by the operating system's hook between resolving
// and connecting, so that a name which resolves to something else a second later is no way around it.
func dialer(rules Rules) func(ctx context.Context, network, address string) (net.Conn, error) {
	d := &net.Dialer{
		Timeout:   dialTimeout,
		KeepAlive: 15 * time.Second,
		Control: func(_, address string, _ syscall.RawConn) error {
			resolved, err := netip.ParseAddrPort(address)
			if err != nil {
				return fmt.Errorf("address %q: not an IP address and port", address)
			}
			return rules.checkAddr(resolved.Addr())
		},
	}
	return d.DialContext
}

// httpProxy sends everything through one proxy. The environment's proxies are never used: they would be a way around
// the dialer's check.
func httpProxy(proxy *url.URL) func(*http.Request) (*url.URL, error) { return http.ProxyURL(proxy) }
