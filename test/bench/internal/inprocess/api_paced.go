package inprocess

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"runtime"
	"runtime/debug"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"
	"google.golang.org/protobuf/proto"

	plimsollv1 "github.com/plimsoll-dev/plimsoll/proto/plimsoll/v1"
)

const (
	pacedConns = 8
	// pacedRoom is how many calls of a connection may be under way; the hub takes 256. By then it is 400 ms behind.
	pacedRoom = 250
)

// Of HTTP/2.
const (
	preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
	// Nothing that comes needs a window update then.
	windowSize = 1 << 30

	frameHeader                                                                             = 9
	frameData, frameHeaders, frameReset, frameSettings, framePing, frameGoAway, frameWindow = 0, 1, 3, 4, 6, 7, 8
	flagAck, flagEndStream, flagEndHeaders                                                  = 1, 1, 4
	firstStream                                                                             = 1
)

// paced calls GetObjectState at the order's rate, whether or not the calls before it are answered. One thread writes requests when they are
// due and does nothing else, because goroutines that wait for their turn are a millisecond late: the runtime waits for the
// network in whole milliseconds. Frames are written by hand, because the generator takes its share of the machine's cores, and what it
// takes the hub has not. It returns how long calls took, from when they were due, and how late they were sent.
func (c *apiClient) paced(ctx context.Context) (took, late []time.Duration, err error) {
	runtime.GOMAXPROCS(max(4, runtime.GOMAXPROCS(0))) // so that answers are read while the thread writes
	conns := make([]*pacedConn, pacedConns)
	for i := range conns {
		if conns[i], err = c.openPaced(ctx, i); err != nil {
			return nil, nil, err
		}
	}
	runtime.GC()
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // its own collections would count as the hub's latency
	turns := pace{begun: time.Now(), every: time.Second / time.Duration(c.order.Rate), calls: int(c.order.For.Seconds() * float64(c.order.Rate))}
	group, ctx := errgroup.WithContext(ctx)
	for _, conn := range conns {
		context.AfterFunc(ctx, func() { _ = conn.Close() }) // at the end, or when a call has failed and nobody may wait for others
		group.Go(func() (err error) {
			conn.took, err = conn.answers(turns, firstStream+2)
			return err
		})
	}
	group.Go(func() (err error) {
		late, err = turns.send(ctx, conns)
		return err
	})
	if err := group.Wait(); err != nil {
		return nil, nil, err
	}
	for _, conn := range conns {
		took = append(took, conn.took...)
	}
	return took, late, nil
}

// A pace is when calls are due. They take the connections in turns.
type pace struct {
	begun time.Time
	every time.Duration
	calls int
}

func (p pace) due(n int) time.Time { return p.begun.Add(time.Duration(n) * p.every) }

// send writes all calls, and returns how late each was, by the fault of this process or of the machine.
func (p pace) send(ctx context.Context, to []*pacedConn) ([]time.Duration, error) {
	keepTime()
	late := make([]time.Duration, 0, p.calls)
	for n := range p.calls {
		if left := time.Until(p.due(n)); left > 0 {
			span := unix.NsecToTimespec(int64(left))
			_ = unix.Nanosleep(&span, nil) // a signal may end it: the call is early by less than the time between two
		}
		late = append(late, time.Since(p.due(n)))
		if err := to[n%len(to)].call(ctx, n); err != nil {
			return nil, err
		}
	}
	return late, nil
}

// keepTime has the kernel run this goroutine's thread, which ends with it, when it is due. Without the right to that it may be late; the
// report shows by how much. A real-time thread would keep waiting for locks of the Go runtime, whose holders then do not run.
func keepTime() {
	runtime.LockOSThread() // and never unlock it: nothing else runs on this thread
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0)
	_ = unix.Setpriority(unix.PRIO_PROCESS, 0, -20)
}

// pacedConn is a gRPC connection for one method.
type pacedConn struct {
	net.Conn
	number  int
	reader  *bufio.Reader
	headers [][]byte // of the callers on this connection, in turns
	next    uint32   // stream
	message []byte
	room    chan struct{}
	took    []time.Duration
}

// openPaced opens a connection and makes a first call on it, which counts for nothing.
func (c *apiClient) openPaced(ctx context.Context, number int) (*pacedConn, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", c.order.GRPC)
	if err != nil {
		return nil, err
	}
	p := &pacedConn{Conn: conn, number: number, reader: bufio.NewReaderSize(conn, 64<<10), next: firstStream, room: make(chan struct{}, pacedRoom)}
	for caller := number; caller < apiCallers; caller += pacedConns {
		p.headers = append(p.headers, headerBlock(c.order.GRPC, caller))
	}
	if err = p.begin(ctx); err != nil {
		_ = conn.Close()
		return nil, err
	}
	return p, conn.SetDeadline(time.Now().Add(c.order.For + 30*time.Second))
}

func (p *pacedConn) begin(ctx context.Context) error {
	settings := []byte{0, 4, windowSize >> 24, 0, 0, 0} // SETTINGS_INITIAL_WINDOW_SIZE
	hello := append(appendFrame([]byte(preface), frameSettings, 0, 0, len(settings)), settings...)
	hello = binary.BigEndian.AppendUint32(appendFrame(hello, frameWindow, 0, 0, 4), windowSize)
	if _, err := p.Write(hello); err != nil {
		return err
	}
	if err := p.call(ctx, p.number); err != nil {
		return err
	}
	_, err := p.answers(pace{begun: time.Now(), calls: p.number + 1}, firstStream)
	return err
}

// headerBlock says in HPACK, without its tables, what a caller calls.
func headerBlock(authority string, caller int) (block []byte) {
	for _, field := range [][2]string{
		{":method", "POST"}, {":scheme", "http"}, {":path", plimsollv1.ObjectService_GetObjectState_FullMethodName}, {":authority", authority},
		{"content-type", "application/grpc"}, {"te", "trailers"}, {"authorization", fmt.Sprintf("Bearer user-%d", caller)},
	} {
		block = append(block, 0x10) // a literal that is never indexed
		for _, text := range field {
			block = append(append(block, byte(len(text))), text...) // shorter than 127 bytes
		}
	}
	return block
}

func appendFrame(to []byte, kind, flags byte, stream uint32, size int) []byte {
	return binary.BigEndian.AppendUint32(append(to, byte(size>>16), byte(size>>8), byte(size), kind, flags), stream)
}

// call sends the n-th call of all, on the connection's next stream. So little is under way that the hub's windows are never full.
func (p *pacedConn) call(ctx context.Context, n int) error {
	select {
	case p.room <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	key := apiKey(apiMember(n), n%apiKeys)
	block := p.headers[n/pacedConns%len(p.headers)]
	p.message = appendFrame(p.message[:0], frameHeaders, flagEndHeaders, p.next, len(block))
	p.message = append(p.message, block...)
	data := len(p.message)
	p.message = append(p.message, make([]byte, frameHeader+5)...)
	var err error
	if p.message, err = (proto.MarshalOptions{}).MarshalAppend(p.message, &plimsollv1.GetObjectStateRequest{
		Cluster: key.Member, Controller: key.Controller, Namespace: key.Namespace, Name: key.Name,
	}); err != nil {
		return err
	}
	size := len(p.message) - data - frameHeader
	appendFrame(p.message[:data], frameData, flagEndStream, p.next, size)
	binary.BigEndian.PutUint32(p.message[data+frameHeader+1:], uint32(size-5))
	p.next += 2
	_, err = p.Write(p.message)
	return err
}

// answers reads the answers to this connection's calls, the first of which has a stream, and returns how long each took from when it was
// due.
func (p *pacedConn) answers(of pace, first uint32) ([]time.Duration, error) {
	calls := (of.calls - p.number + pacedConns - 1) / pacedConns
	took, found := make([]time.Duration, 0, calls), make([]bool, calls)
	for len(took) < calls {
		kind, flags, stream, payload, err := p.frame()
		if err != nil {
			return nil, err
		}
		k := int(stream-first) / 2
		n := p.number + k*pacedConns
		switch kind {
		case frameSettings, framePing:
			if err := p.acknowledge(kind, flags, payload); err != nil {
				return nil, err
			}
		case frameReset, frameGoAway:
			return nil, fmt.Errorf("the hub ended stream %d of connection %d", stream, p.number)
		case frameData:
			found[k] = found[k] || bytes.Contains(payload, []byte(apiKey("", n%apiKeys).Name))
		case frameHeaders:
			if flags&flagEndStream == 0 {
				continue
			}
			took = append(took, time.Since(of.due(n)))
			if !found[k] { // errors have no message
				return nil, fmt.Errorf("call %d was not answered with its object", n)
			}
			<-p.room
		}
	}
	return took, nil
}

// acknowledge answers what the hub wants acknowledged: gRPC measures connections with pings.
func (p *pacedConn) acknowledge(kind, flags byte, payload []byte) error {
	if flags&flagAck != 0 {
		return nil
	}
	if kind == frameSettings {
		payload = nil
	}
	_, err := p.Write(append(appendFrame(nil, kind, flagAck, 0, len(payload)), payload...))
	return err
}

// frame reads a frame. Its payload is good until the next one.
func (p *pacedConn) frame() (kind, flags byte, stream uint32, payload []byte, err error) {
	var head [frameHeader]byte
	if _, err = io.ReadFull(p.reader, head[:]); err != nil {
		return 0, 0, 0, nil, err
	}
	size := int(head[0])<<16 | int(head[1])<<8 | int(head[2])
	if payload, err = p.reader.Peek(size); err == nil { // the hub's frames are smaller than the buffer
		_, err = p.reader.Discard(size)
	}
	return head[3], head[4], binary.BigEndian.Uint32(head[5:]) & (1<<31 - 1), payload, err
}
