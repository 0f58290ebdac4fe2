package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/gob"
	"errors"
	"io"
	"net/url"
	"time"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/plimsoll-dev/plimsoll/test/bench/internal/partner"
)

// loadCommand is the argument with which this program sends a load and does nothing else.
const loadCommand = "send-load"

// A loadOrder is what another process is to send, and a loadReport what came of it.
type (
	loadOrder struct {
		Address        string
		Bundle         []byte
		Owners, UIDsAt []int
		Calls          [][]byte
		Duration       time.Duration
		First, Rate    int
	}
	loadReport struct {
		Latencies []time.Duration
		Nothing   bool // was answered
	}
)

// loadApart is loadWith in a process of its own: where a hostile member runs in this one, the load would wait for its goroutines,
// and that would count as the hub's latency. Answers are not kept.
func loadApart(ctx context.Context, target *url.URL, bundle []byte, recorded *recording, owners []*appsv1.ReplicaSet, l load) (*loadResult, error) {
	order := loadOrder{Address: target.Host, Bundle: bundle, Duration: l.duration, First: l.first, Rate: l.rate}
	for i, owner := range owners {
		c, err := newCall(target, recorded, i, owner.Namespace, owner.Name, string(owner.UID))
		if err != nil {
			return nil, err
		}
		order.Owners, order.UIDsAt, order.Calls = append(order.Owners, c.owner), append(order.UIDsAt, c.uidAt), append(order.Calls, c.bytes)
	}
	var got loadReport
	if err := partner.Follow(ctx, loadCommand, order, &got); err != nil {
		return nil, err
	}
	if got.Nothing {
		return nil, errNothingAnswered
	}
	return &loadResult{latencies: got.Latencies, elapsed: l.duration}, nil
}

// sendLoad does what an order says.
func sendLoad(in io.Reader, out io.Writer) error {
	var order loadOrder
	if err := gob.NewDecoder(in).Decode(&order); err != nil {
		return err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(order.Bundle) {
		return errors.New("the webhook's certificate authority is no PEM")
	}
	l := load{
		address: order.Address, tls: &tls.Config{RootCAs: roots, ServerName: "127.0.0.1", MinVersion: tls.VersionTLS13},
		duration: order.Duration, first: order.First, rate: order.Rate,
	}
	for i, text := range order.Calls {
		l.calls = append(l.calls, &call{owner: order.Owners[i], uidAt: order.UIDsAt[i], bytes: text})
	}
	result, err := l.run(context.Background())
	if errors.Is(err, errNothingAnswered) {
		return gob.NewEncoder(out).Encode(loadReport{Nothing: true})
	}
	if err != nil {
		return err
	}
	return gob.NewEncoder(out).Encode(loadReport{Latencies: result.latencies})
}
