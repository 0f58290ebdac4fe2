package api

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/plimsoll-dev/plimsoll/hub/api/auth"
)

// Backend is what the API reads from and orders with; all of it is needed but Fleet.
type Backend struct {
	Members   Members
	Workloads Workloads
	Objects   Objects
	Ownership Ownership
	Events    Events
	// Fleet is nil where fleet placement is off.
	Fleet Fleet
	// Batches are the RequeueMatching orders of this replica. Both of its sides must have the same, or a retry by way of another replica
	// orders twice. Nil: the side has its own.
	Batches *Batches
}

// Options of the public side, see [New].
type Options struct {
	Backend
	// Peers reaches the other replicas; needed.
	Peers Peers
	// OwnerTimeout is how long another replica may take for an answer. Default 3 s.
	OwnerTimeout time.Duration
	// CallsPerSecond is how many calls a caller may make on this replica in a second, on average; twice as many at once. Opening a
	// watch is one. Default 500; negative: any number.
	CallsPerSecond int
	// RecheckEvery is how often the token and the rights of a watch are looked at; what was looked up lately is remembered for 10 s
	// more. Default 10 s.
	RecheckEvery time.Duration
	// ReaderPatience is how long the reader of a watch over REST may take nothing before the watch is ended. Default 30 s.
	ReaderPatience time.Duration

	// Authenticator and Authorizer let callers in; both are needed, unless Unauthenticated is set.
	Authenticator auth.Authenticator
	Authorizer    auth.Authorizer
	// Unauthenticated takes every caller for an administrator. Both listeners must then be on loopback.
	Unauthenticated bool
	// ClientCAs returns the authorities whose client certificates say who calls where no token does, as they are now: the same pool until
	// they change. Nil: no certificate is asked for. It needs TLS.
	ClientCAs func() *x509.CertPool
	// TLS serves both listeners. Nil serves plain text, which only loopback listeners may.
	TLS *tls.Config

	// Page serves what it says it serves on the REST listener, without authentication and before the methods; nil: nothing.
	Page Page

	// Log is needed. It gets a line for each call: orders and refusals at info, everything else at debug.
	Log *slog.Logger
	// Registerer gets the metrics. Nil: nobody does.
	Registerer prometheus.Registerer
}

func (b Backend) check() error {
	if b.Members == nil || b.Workloads == nil || b.Objects == nil || b.Ownership == nil || b.Events == nil {
		return errors.New("API: Members, Workloads, Objects, Ownership and Events are all needed")
	}
	return nil
}

func (o Options) withDefaults() (Options, error) {
	if err := o.check(); err != nil {
		return o, err
	}
	if o.Peers == nil || o.Log == nil {
		return o, errors.New("API: Peers and Log are needed")
	}
	switch {
	case o.Unauthenticated && (o.Authenticator != nil || o.Authorizer != nil):
		return o, errors.New("API: must be unauthenticated, or have an Authenticator and an Authorizer")
	case o.ClientCAs != nil && (o.Unauthenticated || o.TLS == nil):
		return o, errors.New("API: client certificates need TLS and an Authorizer")
	case o.Unauthenticated:
		o.Authorizer = everything{}
	case o.Authenticator == nil || o.Authorizer == nil:
		return o, errors.New("API: an Authenticator and an Authorizer are needed, unless it is unauthenticated")
	}
	if o.OwnerTimeout <= 0 {
		o.OwnerTimeout = 3 * time.Second
	}
	if o.CallsPerSecond == 0 {
		o.CallsPerSecond = 500
	}
	if o.RecheckEvery <= 0 {
		o.RecheckEvery = 10 * time.Second
	}
	if o.ReaderPatience <= 0 {
		o.ReaderPatience = 30 * time.Second
	}
	return o, nil
}
