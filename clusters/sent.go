package clusters

import (
	"errors"
	"net"
)

// NotSent reports whether err is of a request through a member's client that never went out: the fence, the breaker or the
// budget of requests stopped it, or there was no connection to send it on. The result of a write that failed without an
// answer for any other reason is not known.
func NotSent(err error) bool {
	var network *net.OpError
	return errors.Is(err, ErrNotOwner) || errors.Is(err, ErrBreakerOpen) || errors.Is(err, errBudget) ||
		(errors.As(err, &network) && network.Op == "dial")
}
