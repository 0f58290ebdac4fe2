package main

import (
	"errors"
	"fmt"
	"net"
	"strconv"
)

// ports are where the hub listens on loopback.
type ports struct{ GRPC, REST, Webhook, Peer, Metrics, Probes int }

// usual are the ports that the API has in the printed lines unless something else listens there, so that a line from
// yesterday works today.
var usual = ports{GRPC: 9090, REST: 8443}

// findPorts finds free ports. They are not held: the hub has to take them soon.
func findPorts() (ports, error) {
	var found ports
	var listeners []net.Listener
	defer func() {
		for _, l := range listeners {
			_ = l.Close()
		}
	}()
	for _, want := range []struct {
		port  *int
		first int // tried first; 0 means any
	}{
		{&found.GRPC, usual.GRPC}, {&found.REST, usual.REST}, {&found.Webhook, 0}, {&found.Peer, 0}, {&found.Metrics, 0}, {&found.Probes, 0},
	} {
		l, err := listen(want.first)
		if err != nil {
			return ports{}, err
		}
		listeners = append(listeners, l) // all are open until the last is found, so none is found twice
		tcp, ok := l.Addr().(*net.TCPAddr)
		if !ok {
			return ports{}, errors.New("find a free port: the listener has no TCP address")
		}
		*want.port = tcp.Port
	}
	return found, nil
}

// listen takes a loopback port, or any other one when that is taken.
func listen(port int) (net.Listener, error) {
	l, err := net.Listen("tcp", loopback(port))
	if err != nil && port != 0 {
		l, err = net.Listen("tcp", loopback(0))
	}
	if err != nil {
		return nil, fmt.Errorf("find a free port: %w", err)
	}
	return l, nil
}

// loopback is a port as host:port.
func loopback(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }
