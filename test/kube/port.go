package kube

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// A heldPort is a loopback port that nobody else can be given while we hold it. The socket is bound and never
// listens, so a connection is refused unless the component that the port is for listens too, which SO_REUSEPORT allows
// to processes of the same user. A component can thus be stopped and come back to its own port.
type heldPort struct {
	number int
	fd     int
}

// holdPort has the kernel choose a free port and holds it.
func holdPort() (*heldPort, error) {
	syscall.ForkLock.RLock()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	if err == nil {
		unix.CloseOnExec(fd)
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return nil, fmt.Errorf("hold a port: %w", err)
	}
	number, err := bindLoopback(fd)
	if err != nil {
		_ = unix.Close(fd)
		return nil, fmt.Errorf("hold a port: %w", err)
	}
	return &heldPort{number: number, fd: fd}, nil
}

func bindLoopback(fd int) (int, error) {
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEPORT, 1); err != nil {
		return 0, err
	}
	if err := unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return 0, err
	}
	address, err := unix.Getsockname(fd)
	if err != nil {
		return 0, err
	}
	inet, ok := address.(*unix.SockaddrInet4)
	if !ok {
		return 0, fmt.Errorf("bound to %T instead of an IPv4 address", address)
	}
	return inet.Port, nil
}

// address is the port as host:port.
func (p *heldPort) address() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(p.number)) }

// listen accepts connections on the held port in this process.
func (p *heldPort) listen(ctx context.Context) (net.Listener, error) {
	config := net.ListenConfig{Control: func(_, _ string, raw syscall.RawConn) error {
		var inner error
		err := raw.Control(func(fd uintptr) {
			inner = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEPORT, 1)
		})
		if err != nil {
			return err
		}
		return inner
	}}
	return config.Listen(ctx, "tcp4", p.address())
}

// release gives the port back to the kernel.
func (p *heldPort) release() { _ = unix.Close(p.fd) }
