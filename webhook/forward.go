package webhook

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"
)

// PeerPattern is where a replica takes calls that another one forwards; see [Handler.Peer].
const PeerPattern = "POST /peer/v1/members/{member}/pods"

// maxAnswer is the largest answer of an owner that is passed on.
const maxAnswer = 1 << 20

// A Router knows which replica answers the calls of a member. It is asked for every call, concurrently.
type Router interface {
	// Route returns local true when this replica owns member; else the host:port of the owner's peer server, or "" when
	// nobody is known to own it.
	Route(member string) (local bool, owner string)
}

// A Forwarder sends calls to the replica that owns their member. The token stays behind: replicas know each other by
// their certificates.
type Forwarder struct {
	client *http.Client
	silent silentOwners
}

// NewForwarder forwards with the client side of a certificate authority that replicas share (hub/pki).
func NewForwarder(config *tls.Config) *Forwarder {
	return &Forwarder{client: &http.Client{
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{
			TLSClientConfig:     config,
			DialContext:         (&net.Dialer{Timeout: placeTimeout}).DialContext,
			TLSHandshakeTimeout: placeTimeout,
			ForceAttemptHTTP2:   true,
			MaxIdleConnsPerHost: 16,
			IdleConnTimeout:     90 * time.Second,
			HTTP2:               &http.HTTP2Config{SendPingTimeout: pingOwner, PingTimeout: pingOwner},
		},
	}}
}

// Close ends idle connections.
func (f *Forwarder) Close() { f.client.CloseIdleConnections() }

// forward appends the owner's answer to into.
func (f *Forwarder) forward(ctx context.Context, owner, member string, body []byte, into *bytes.Buffer) error {
	// A transport may continue reading a body after it has returned, and ours goes back into a pool.
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://"+owner+"/peer/v1/members/"+member+"/pods", bytes.NewReader(bytes.Clone(body)))
	if err != nil {
		return fmt.Errorf("forward to %s: %w", owner, err)
	}
	request.Header.Set("Content-Type", "application/json")
	if !f.silent.mayAsk(owner) {
		return fmt.Errorf("forward to %s: %w", owner, errSilentOwner)
	}
	response, err := f.client.Do(request)
	f.silent.asked(owner, err)
	if err != nil {
		return fmt.Errorf("forward to the owner: %w", err) // names the address
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("forward to %s: %s", owner, response.Status)
	}
	if _, err := into.ReadFrom(io.LimitReader(response.Body, maxAnswer+1)); err != nil {
		return fmt.Errorf("forward to %s: read the answer: %w", owner, err)
	}
	if into.Len() > maxAnswer {
		return fmt.Errorf("forward to %s: the answer has more than %d bytes", owner, maxAnswer)
	}
	return nil
}
