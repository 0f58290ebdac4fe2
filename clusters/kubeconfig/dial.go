package kubeconfig

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

// DialTimeout bounds name resolution and connecting.
const DialTimeout = 5 * time.Second

// dialer connects only to addresses that rules allow. The check is made by the operating system's hook between resolving
// and connecting, so that a name which resolves to something else a second later is no way around it.
//
// What the other side does not acknowledge for unacked is thrown away with its connection, where the operating system can
// do that; 0 leaves it to the operating system, which sends for many minutes.
func dialer(rules Rules, unacked time.Duration) func(ctx context.Context, network, address string) (net.Conn, error) {
	d := &net.Dialer{
		Timeout:   DialTimeout,
		KeepAlive: 15 * time.Second,
		Control: func(_, address string, conn syscall.RawConn) error {
			resolved, err := netip.ParseAddrPort(address)
			if err != nil {
				return fmt.Errorf("address %q: not an IP address and port", address)
			}
			if err := rules.checkAddr(resolved.Addr()); err != nil {
				return err
			}
			return dropUnacked(conn, unacked)
		},
	}
	return d.DialContext
}

// DialContext returns a dialer that connects only to addresses that the rules allow, for servers that are no members.
func (r Rules) DialContext() func(ctx context.Context, network, address string) (net.Conn, error) {
	return dialer(r, 0)
}

// httpProxy sends everything through one proxy. The environment's proxies are never used: they would be a way around
// the dialer's check.
func httpProxy(proxy *url.URL) func(*http.Request) (*url.URL, error) { return http.ProxyURL(proxy) }
