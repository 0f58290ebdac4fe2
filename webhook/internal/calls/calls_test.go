package calls

import (
	"context"
	"io"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"
)

func TestTheRefusalsOfAMemberAreSentOneAfterTheOtherOnceTheyAreMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		r := NewRefusals()
		took := func(ctx context.Context, of string) time.Duration {
			started := time.Now()
			r.Wait(new(http.Request).WithContext(ctx), of)
			return time.Since(started)
		}
		const apart = time.Second / refusalRate
		for range RefusalBurst {
			g.Expect(took(t.Context(), "bad")).To(BeZero())
		}
		for range 3 {
			g.Expect(took(t.Context(), "bad")).To(Equal(apart))
		}
		delays := make(chan time.Duration, 10*maxRefusalDebt)
		for range cap(delays) {
			go func() { delays <- took(t.Context(), "bad") }()
		}
		var all, longest time.Duration
		for range cap(delays) {
			delay := <-delays
			all, longest = all+delay, max(longest, delay)
		}
		g.Expect(longest).To(Equal(maxRefusalDelay), "however many there are")
		g.Expect(all).To(BeNumerically(">", time.Duration(cap(delays)-maxRefusalDebt)*maxRefusalDelay))
		g.Expect(took(t.Context(), "bad")).To(BeNumerically("<=", 2*apart), "those that waited for the longest time leave nothing behind")

		gone, leave := context.WithCancel(t.Context())
		leave()
		time.Sleep(time.Minute) // the member is quiet for a while
		for range RefusalBurst {
			g.Expect(took(gone, "bad")).To(BeZero())
		}
		g.Expect(took(gone, "bad")).To(BeZero(), "who called is gone")
	})
}

// closable is a body that knows whether it was closed.
type closable struct {
	io.Reader
	closed bool
}

func (c *closable) Close() error {
	c.closed = true
	return nil
}

// Over HTTP/2 the server keeps what came of a body until somebody reads it, for each call that waits.
func TestWhileARefusalWaitsNothingOfItsCallIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, r := NewWithT(t), NewRefusals()
		refuse := func(version int) bool {
			body := &closable{Reader: http.NoBody}
			call := &http.Request{ProtoMajor: version, Body: body}
			r.Wait(call.WithContext(t.Context()), "bad")
			return body.closed
		}
		for range RefusalBurst {
			g.Expect(refuse(2)).To(BeFalse(), "it is sent at once, and the caller gets to read it")
		}
		g.Expect(refuse(2)).To(BeTrue())
		g.Expect(refuse(1)).To(BeFalse(), "that would read it")
	})
}

func TestACallSaysHowLongItIs(t *testing.T) {
	g := NewWithT(t)
	g.Expect(RefusedLength(-1, 10)).To(Equal(http.StatusLengthRequired))
	g.Expect(RefusedLength(11, 10)).To(Equal(http.StatusRequestEntityTooLarge))
	g.Expect(RefusedLength(10, 10)).To(BeZero())
}
