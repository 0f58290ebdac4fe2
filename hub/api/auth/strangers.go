package auth

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/plimsoll-dev/plimsoll/hub/api/internal/cache"
	"github.com/plimsoll-dev/plimsoll/internal/shares"
)

// ErrTooManyBadTokens says that a token was not looked at, because too many from the same address were bad.
var ErrTooManyBadTokens = errors.New("too many bearer tokens from this address were not accepted")

const (
	// badBeforeSuspect is how many bad tokens an address may show within suspectFor before it is a suspect.
	badBeforeSuspect = 5
	suspectFor       = time.Minute
	// badBeforeShared is the same for all who come through this machine's loopback address, as behind a port-forward: each connection
	// of theirs counts by itself before that.
	badBeforeShared = 100
	// A suspect has a question to the cluster every suspectEvery, and all suspects together suspectRate a second: what is left
	// of the cluster's patience is for others.
	suspectEvery = 2 * time.Second
	suspectRate  = 10
	// maxSuspects bounds memory.
	maxSuspects = 4096
	// trustedFor is how long the holder of a token that was accepted is no stranger, whatever else comes from its address.
	trustedFor = 10 * time.Minute

	// clockSkew is how far clocks may be apart when a token's own times are looked at.
	clockSkew = time.Minute
)

// strangers decides whose tokens the cluster is asked about. It may be used concurrently.
type strangers struct {
	suspects *cache.Cache[string, *suspect]
	all      *rate.Limiter
}

// suspect is an address that has shown bad tokens.
type suspect struct {
	mu   sync.Mutex
	bad  int
	next *rate.Limiter
}

func newStrangers() *strangers {
	return &strangers{suspects: cache.New[string, *suspect](maxSuspects), all: rate.NewLimiter(suspectRate, suspectRate)}
}

// stranger is whom bad tokens are counted for: an address, or a connection and the address that it shares with others.
type stranger struct{ one, shared string }

// strangerOf reports who calls.
func strangerOf(ctx context.Context) stranger {
	from := Origin(ctx)
	if at, err := netip.ParseAddrPort(Remote(ctx)); err == nil && at.Addr().Unmap().IsLoopback() {
		return stranger{one: at.String(), shared: from}
	}
	return stranger{one: from}
}

// suspicious reports whether somebody has shown too many bad tokens; an error, that they must wait.
func (s *strangers) suspicious(who stranger) (bool, error) {
	if known, ok := s.suspects.Get(who.one); ok && known.has(badBeforeSuspect) {
		if !known.next.Allow() || !s.all.Allow() {
			return true, ErrTooManyBadTokens
		}
		return true, nil
	}
	if known, ok := s.suspects.Get(who.shared); ok && who.shared != "" && known.has(badBeforeShared) {
		if !s.all.Allow() { // a turn of its own for one who has shown none would be one for whoever connects again
			return true, ErrTooManyBadTokens
		}
		return true, nil
	}
	return false, nil
}

// has reports whether a suspect has shown so many bad tokens.
func (s *suspect) has(n int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.bad >= n
}

// bad notes a bad token.
func (s *strangers) bad(who stranger) {
	s.note(who.one)
	s.note(who.shared)
}

func (s *strangers) note(from string) {
	if from == "" {
		return // a call of our own, or an address that is not shared
	}
	known, ok := s.suspects.Get(from)
	if !ok {
		known = &suspect{next: rate.NewLimiter(rate.Every(suspectEvery), 1)}
	}
	known.mu.Lock()
	known.bad++
	known.mu.Unlock()
	s.suspects.Put(from, known, suspectFor)
}

// Origin is whom a call is counted for: the address, or for IPv6 the network of 64 bits, which is one subscriber's.
func Origin(ctx context.Context) string {
	remote := Remote(ctx)
	if address := shares.Address(remote); address.IsValid() {
		return address.String()
	}
	host, _, _ := net.SplitHostPort(remote) // a text that has none has an empty one
	return host
}

// hopeless reports that a token says of itself that the cluster will not accept it: it has expired, is not valid yet, or is a
// service account's for another audience. What it says is not verified, and is believed only to the token's disadvantage.
func hopeless(token, audience string, now time.Time) bool {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return false
	}
	text, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return false
	}
	var claims struct {
		Expires        *float64        `json:"exp"`
		NotBefore      *float64        `json:"nbf"`
		Audience       audiences       `json:"aud"`
		ServiceAccount json.RawMessage `json:"kubernetes.io"`
	}
	if json.Unmarshal(text, &claims) != nil {
		return false
	}
	seconds, skew := float64(now.Unix()), clockSkew.Seconds()
	switch {
	case claims.Expires != nil && *claims.Expires < seconds-skew, claims.NotBefore != nil && *claims.NotBefore > seconds+skew:
		return true
	case audience != "" && claims.ServiceAccount != nil && len(claims.Audience) > 0:
		return !slices.Contains(claims.Audience, audience)
	}
	return false
}

// audiences are one text or a list of them.
type audiences []string

// UnmarshalJSON reads either.
func (a *audiences) UnmarshalJSON(text []byte) error {
	var single string
	if json.Unmarshal(text, &single) == nil {
		*a = audiences{single}
		return nil
	}
	return json.Unmarshal(text, (*[]string)(a))
}

// equalShares gives each of many an equal number of places. It may be used concurrently.
type equalShares struct {
	each int

	mu  sync.Mutex
	own map[string]*share // of those with calls
}

type share struct {
	places chan struct{}
	calls  int
}

func newEqualShares(each int) *equalShares { return &equalShares{each: each, own: map[string]*share{}} }

// take waits for a place of whose; what it returns gives it back.
func (s *equalShares) take(ctx context.Context, whose string) (giveBack func(), err error) {
	own := s.enter(whose)
	select {
	case own.places <- struct{}{}:
		return func() {
			<-own.places
			s.leave(whose)
		}, nil
	case <-ctx.Done():
		s.leave(whose)
		return nil, ctx.Err()
	}
}

func (s *equalShares) enter(whose string) *share {
	s.mu.Lock()
	defer s.mu.Unlock()
	own := s.own[whose]
	if own == nil {
		own = &share{places: make(chan struct{}, s.each)}
		s.own[whose] = own
	}
	own.calls++
	return own
}

func (s *equalShares) leave(whose string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	own := s.own[whose]
	if own.calls--; own.calls == 0 {
		delete(s.own, whose)
	}
}
