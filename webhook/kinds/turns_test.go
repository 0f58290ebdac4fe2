package kinds

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"

	"github.com/plimsoll-dev/plimsoll/internal/shares"
	"github.com/plimsoll-dev/plimsoll/reconcile/webapp"
	"github.com/plimsoll-dev/plimsoll/webhook"
	"github.com/plimsoll-dev/plimsoll/webhook/internal/calls"
)

func TestCallsOfOneMemberWaitBeforeTheyHoldUpOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		turns := newTurns()
		var held []func()
		for range 2 {
			giveBack, err := turns.take(t.Context(), "greedy", maxBytesOfMember/2)
			g.Expect(err).NotTo(HaveOccurred())
			held = append(held, giveBack)
		}
		_, err := turns.take(t.Context(), "greedy", 1)
		g.Expect(err).To(MatchError(context.DeadlineExceeded))
		other, err := turns.take(t.Context(), "modest", maxConversion)
		g.Expect(err).NotTo(HaveOccurred())
		other()
		waiting := make(chan error, 1)
		go func() {
			giveBack, err := turns.take(t.Context(), "greedy", 1)
			if err == nil {
				giveBack()
			}
			waiting <- err
		}()
		time.Sleep(time.Second)
		held[0]()
		g.Expect(<-waiting).To(Succeed())
		held[1]()
		time.Sleep(time.Minute)
		last, err := turns.take(t.Context(), "modest", 1)
		g.Expect(err).NotTo(HaveOccurred())
		last()
		g.Expect(turns.members).To(BeEmpty(), "nothing is kept of members without calls")
	})
}

func TestLargeCallsAboutWebAppsOfOneMemberWaitForTimeToPass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, turns := NewWithT(t), newTurns()
		take := func(member string, bytes int64) error {
			giveBack, err := turns.take(t.Context(), member, bytes)
			if err == nil {
				giveBack()
			}
			return err
		}
		began := time.Now()
		for read := int64(0); read < largeBurst; read += maxConversion {
			g.Expect(take("greedy", maxConversion)).To(Succeed())
		}
		g.Expect(time.Since(began)).To(BeZero())
		g.Expect(take("greedy", calls.LargeCall)).To(Succeed())
		g.Expect(take("modest", maxConversion)).To(Succeed())
		g.Expect(time.Since(began)).To(BeZero(), "its usual calls and those of others do not wait")
		g.Expect(take("greedy", maxConversion)).To(Succeed())
		g.Expect(time.Since(began)).To(Equal(time.Second * maxConversion / largeRate))
		g.Expect(take("greedy", maxConversion)).To(Succeed())
		waits := make(chan error)
		go func() { waits <- take("greedy", maxConversion) }()
		synctest.Wait()
		g.Expect(take("greedy", maxConversion)).NotTo(Succeed(), "its turn would come too late")
		g.Expect(<-waits).To(Succeed())
	})
}

// slowly is a body of which one byte comes at once, and nothing more until its sender is gone.
type slowly struct {
	sender context.Context
	begun  *atomic.Int32 // bodies of which something was read
	read   bool
}

func (s *slowly) Read(p []byte) (int, error) {
	if !s.read {
		s.read = true
		s.begun.Add(1)
		p[0] = ' '
		return 1, nil
	}
	<-s.sender.Done()
	return 0, io.ErrUnexpectedEOF
}

// A body comes as slowly as its sender likes. What is held meanwhile is bounded by the length that each call says it has.
func TestConversionsThatComeSlowlyHoldNoMoreThanTheirMemberMay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		s := newKindSite(t, webapp.Policy{})
		var begun atomic.Int32
		post := func(sender context.Context, length int64) int {
			request := httptest.NewRequest(http.MethodPost, s.at("/convert"), &slowly{sender: sender, begun: &begun})
			request.ContentLength = length
			answer := httptest.NewRecorder()
			s.ServeHTTP(answer, request)
			return answer.Code
		}
		sender, leave := context.WithTimeout(t.Context(), time.Second)
		defer leave()
		g.Expect(post(sender, -1)).To(Equal(http.StatusLengthRequired), "nobody knows what it would hold")
		g.Expect(begun.Load()).To(BeZero(), "it is refused unread")

		sender, leave = context.WithCancel(t.Context())
		defer leave()
		codes := make(chan int, 8)
		var all sync.WaitGroup
		for range cap(codes) {
			all.Go(func() { codes <- post(sender, maxConversion) })
		}
		time.Sleep(2 * turnTimeout)
		const held = maxBytesOfMember / maxConversion
		g.Expect(begun.Load()).To(BeEquivalentTo(held), "the others are refused unread")
		g.Expect(codes).To(HaveLen(cap(codes) - held))
		for range cap(codes) - held {
			g.Expect(<-codes).To(Equal(http.StatusTooManyRequests))
		}
		leave()
		all.Wait()
	})
}

func TestALargeCallAboutAKindIsReadInPieces(t *testing.T) {
	s := newKindSite(t, webapp.Policy{})
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		took := func(bytes int) time.Duration {
			request := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(strings.Repeat(" ", bytes)))
			request.SetPathValue("member", "eu")
			request.SetPathValue("token", current(g, s.tokens.For(webhook.ForConversions), "eu"))
			began := time.Now()
			read := s.admit(s.tokens.For(webhook.ForConversions), maxConversion, func(_ http.ResponseWriter, r *http.Request, _ asking) bool {
				return g.Expect(io.ReadAll(r.Body)).To(HaveLen(bytes))
			})
			g.Expect(read(httptest.NewRecorder(), request, asking{})).To(BeTrue())
			return time.Since(began)
		}
		began := time.Now()
		calls.Pause()
		pause := time.Since(began)
		g.Expect(took(calls.LargeCall)).To(BeZero())
		g.Expect(took(10 * calls.Piece)).To(Equal(10 * pause))
	})
}

func TestLargeCallsAboutKindsAreDecodedOneAtATime(t *testing.T) {
	g := NewWithT(t)
	s := newKindSite(t, webapp.Policy{})
	begun, end := make(chan int), make(chan struct{})
	var done sync.WaitGroup
	review := func(bytes int) {
		done.Go(func() {
			_, outcome, err := s.review(asking{}, func(body []byte) (any, string) {
				begun <- len(body)
				<-end
				return nil, outcomeOK
			}, []byte(strings.Repeat(" ", bytes)))
			if outcome != outcomeOK || err != nil {
				t.Errorf("%d bytes: %s, %v", bytes, outcome, err)
			}
		})
	}
	review(calls.LargeCall + 1)
	<-begun
	review(calls.LargeCall + 2)
	review(calls.LargeCall)
	review(calls.LargeCall)
	g.Expect(<-begun).To(Equal(calls.LargeCall), "usual ones do not wait")
	g.Expect(<-begun).To(Equal(calls.LargeCall))
	g.Consistently(begun).ShouldNot(Receive())
	end <- struct{}{} // any of the three
	end <- struct{}{}
	end <- struct{}{}
	g.Expect(<-begun).To(Equal(calls.LargeCall + 2))
	close(end)
	done.Wait()
}

// A small object costs about as much as one of objectBytes, and small calls wait for nothing else.
func TestTheObjectsThatAMemberHasConvertedArePaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, turns := NewWithT(t), newTurns()
		for _, member := range []string{"greedy", "modest", "large"} {
			giveBack, err := turns.take(t.Context(), member, 1)
			g.Expect(err).NotTo(HaveOccurred())
			defer giveBack()
		}
		list := func(member string, objects, bytes int, paid bool) (converted int, err error) {
			if err := turns.due(t.Context(), member); err != nil {
				return 0, err
			}
			for ; converted < objects; converted++ {
				if err := turns.converts(member, converted, bytes, paid); err != nil {
					return converted, err
				}
			}
			return converted, nil
		}
		began := time.Now()
		g.Expect(list("greedy", 10_000, 50, false)).To(Equal(10_000), "API servers list so many at a time")
		g.Expect(list("greedy", 10_000, 50, false)).To(Equal(10_000), "a call that has begun goes on")
		_, err := list("greedy", 1, 50, false)
		g.Expect(err).To(MatchError(ContainSubstring("converts 10240 at once, and then 1024 a second")))
		g.Expect(list("modest", 1, 50, false)).To(Equal(1))
		g.Expect(time.Since(began)).To(BeZero(), "nothing waits that would have to wait for long")
		time.Sleep(10 * time.Second)
		g.Expect(list("greedy", 1, 50, false)).To(Equal(1))

		converted, err := list("greedy", maxObjects+1, 50, false)
		g.Expect(converted).To(Equal(maxObjects))
		g.Expect(err).To(MatchError("a call may have at most 20000 objects"))
		begun := 0
		for ; turns.converts("modest", 0, 10*objectBytes, false) == nil; begun++ { // calls that have all begun before
		}
		g.Expect(begun).To(BeNumerically("~", (objectBurst+maxObjectDebt)/11, 2), "they end together")
		g.Expect(list("large", 10_000, 10*objectBytes, true)).To(Equal(10_000), "bytes that the call was paced for are not paced again")
		g.Expect(list("large", 1, 50, true)).To(Equal(1))
	})
}

func TestSmallConversionsDoNotWaitForLargeCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, turns := NewWithT(t), newTurns()
		giveBack, err := turns.take(t.Context(), "eu", largeBurst)
		g.Expect(err).NotTo(HaveOccurred())
		giveBack()
		go func() {
			if giveBack, err := turns.take(t.Context(), "eu", maxConversion); err == nil {
				giveBack()
			}
		}()
		synctest.Wait()
		began := time.Now()
		g.Expect(turns.due(t.Context(), "eu")).To(Succeed())
		small, err := turns.take(t.Context(), "eu", 1)
		g.Expect(err).NotTo(HaveOccurred())
		small()
		g.Expect(time.Since(began)).To(BeZero())
	})
}

// It shows whose its call is, so its other calls, and those of others behind its address, get new connections.
func TestAMemberWhoseTurnDoesNotComeIsNoFlood(t *testing.T) {
	g := NewWithT(t)
	s := newKindSite(t, webapp.Policy{})
	var ended, closed atomic.Int64
	server := httptest.NewUnstartedServer(s)
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateClosed {
			closed.Add(1)
		}
	}
	shares.Bound(server.Config, shares.Limits{InFlight: 10}, nil)
	limits := shares.StrangerLimits{Free: 1000, Rate: 1 << 20, Burst: 1 << 20, Wait: time.Minute}
	server.Listener = shares.NewStrangers(limits, func(netip.Addr) { ended.Add(1) }).Listener(server.Listener)
	server.Start()
	t.Cleanup(server.Close)
	convert := func(path string) int {
		t.Helper()
		answer, err := server.Client().Post(server.URL+path, "application/json", strings.NewReader(strings.Repeat(" ", 2000)))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(answer.Body.Close()).To(Succeed())
		server.Client().CloseIdleConnections()
		return answer.StatusCode
	}
	objects := s.turns.enter("eu").objects
	objects.SetLimit(0)
	objects.SetBurst(0)
	g.Expect(convert(s.at("/convert"))).To(Equal(http.StatusTooManyRequests))
	g.Eventually(closed.Load).WithTimeout(time.Minute).Should(Equal(int64(1)))
	g.Expect(ended.Load()).To(BeZero())
	g.Expect(convert("/")).To(Equal(http.StatusNotFound))
	g.Eventually(closed.Load).WithTimeout(time.Minute).Should(Equal(int64(2)))
	g.Expect(ended.Load()).To(Equal(int64(1)))
}
