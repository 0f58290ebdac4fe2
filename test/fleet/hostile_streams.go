package fleet

import (
	"bytes"
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/url"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

const (
	// floodAddress is where the connections come from: calls of the good members' API servers come from another address, as they would
	// if each had a machine.
	floodAddress = "127.0.0.2"
	// floodConnections are open at a time, each with floodStreams calls that have headers of floodHeaders bytes.
	floodConnections, floodStreams, floodHeaders = 48, 250, 6000
	// floodPause is between the end of a connection and the next. More often, the TLS handshakes would be measured, of which one half is
	// the attacker's.
	floodPause = 500 * time.Millisecond
	// floodLife is after how long every other connection is given up that the hub has not ended: a new one is read at once.
	floodLife = time.Second
	floodDial = 5 * time.Second
)

// flood sends calls over HTTP/2 as fast as connections last, and leaves no room for their answers. Half of them go to an unknown path, the
// others have no body: the hub refuses all.
type flood struct {
	host, path string // of calls about pods
	ctx        context.Context
	end        context.CancelFunc
	running    sync.WaitGroup
	count      *callCount
}

func newFlood(target string, count *callCount) (*flood, error) {
	parsed, err := url.Parse(target)
	if err != nil {
		return nil, err
	}
	ctx, end := context.WithCancel(context.Background())
	return &flood{host: parsed.Host, path: parsed.Path, ctx: ctx, end: end, count: count}, nil
}

func (f *flood) start() {
	for i := range floodConnections {
		life := time.Duration(0)
		if i%2 == 0 {
			life = floodLife
		}
		f.running.Go(func() {
			for f.ctx.Err() == nil {
				_ = f.connection(life) // ended by the hub, which is what it should do
				pause(f.ctx, floodPause)
			}
		})
	}
}

func (f *flood) stop() {
	f.end()
	f.running.Wait()
}

// connection has calls on one connection until it ends, for as long as life; 0: as long as it takes.
func (f *flood) connection(life time.Duration) error {
	dialer := &tls.Dialer{
		NetDialer: &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(floodAddress)}, Timeout: floodDial},
		Config:    &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}}, // an attacker checks nothing
	}
	conn, err := dialer.DialContext(f.ctx, "tcp", f.host)
	if err != nil {
		return err
	}
	defer context.AfterFunc(f.ctx, func() { _ = conn.Close() })()
	defer func() { _ = conn.Close() }()
	if life > 0 {
		if err := conn.SetDeadline(time.Now().Add(life)); err != nil {
			return err
		}
	}
	if _, err := io.WriteString(conn, http2.ClientPreface); err != nil {
		return err
	}
	return f.send(conn)
}

// send sends the calls of a connection, and waits for its end.
func (f *flood) send(conn net.Conn) error {
	framer, cookie := http2.NewFramer(conn, conn), strings.Repeat("a", floodHeaders)
	if err := framer.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0}); err != nil {
		return err
	}
	var block bytes.Buffer
	encoder := hpack.NewEncoder(&block)
	for i := range floodStreams {
		block.Reset()
		path := f.path
		if i%2 == 0 {
			path += "x"
		}
		for _, field := range []hpack.HeaderField{
			{Name: ":method", Value: "POST"}, {Name: ":scheme", Value: "https"}, {Name: ":authority", Value: f.host}, {Name: ":path", Value: path},
			{Name: "cookie", Value: cookie},
		} {
			if err := encoder.WriteField(field); err != nil {
				return err
			}
		}
		f.count.calls.Add(1)
		err := framer.WriteHeaders(http2.HeadersFrameParam{StreamID: uint32(1 + 2*i), BlockFragment: block.Bytes(), EndHeaders: true, EndStream: true})
		if err != nil {
			return err
		}
	}
	_, err := io.Copy(io.Discard, conn)
	return err
}
