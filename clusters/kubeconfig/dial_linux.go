package kubeconfig

import (
	"fmt"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// dropUnacked has the kernel close the connection when the other side acknowledges nothing for that long. Without it a
// write that was sent before the network was cut is sent again when the network is repaired, long after its caller has given
// up and another replica acts: the fence stands before the kernel's buffers and cannot call it back.
func dropUnacked(conn syscall.RawConn, after time.Duration) error {
	if after <= 0 {
		return nil
	}
	var failed error
	err := conn.Control(func(fd uintptr) {
		failed = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(after.Milliseconds()))
	})
	if err == nil {
		err = failed
	}
	if err != nil {
		return fmt.Errorf("bound how long data may stay unacknowledged: %w", err)
	}
	return nil
}
