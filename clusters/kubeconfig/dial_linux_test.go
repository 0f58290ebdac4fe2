package kubeconfig

import (
	"net"
	"net/netip"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestWhatAMemberDoesNotAcknowledgeIsDroppedWithItsConnectionWhenTheWriteIsOver(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	loopback := []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	for _, unacked := range []time.Duration{0, 1667 * time.Millisecond} {
		conn, err := dialer(Rules{AllowedNetworks: loopback}, unacked)(t.Context(), "tcp", listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		raw, err := conn.(*net.TCPConn).SyscallConn()
		if err != nil {
			t.Fatal(err)
		}
		var have int
		if err := raw.Control(func(fd uintptr) {
			have, err = unix.GetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT)
		}); err != nil {
			t.Fatal(err)
		}
		if err != nil {
			t.Fatal(err)
		}
		if time.Duration(have)*time.Millisecond != unacked {
			t.Errorf("the kernel keeps unacknowledged data for %d ms, want %s", have, unacked)
		}
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
	}
}
