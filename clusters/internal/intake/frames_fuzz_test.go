package intake

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"testing"

	"k8s.io/client-go/kubernetes/scheme"

	"github.com/plimsoll-dev/plimsoll/clusters/quantities"
)

// framesOf are the events of a watch, until it ends or cannot be read.
func framesOf(stream []byte, protobuf bool, limit int64) (frames [][]byte, err error) {
	reader := newFrameReader(bytes.NewReader(stream), limit, protobuf, func(int) error { return nil })
	for {
		frame, err := reader.next()
		if err != nil {
			return frames, err
		}
		frames = append(frames, bytes.Clone(frame))
	}
}

// FuzzFramesOfJSON compares the events that are taken out of a watch with the values that encoding/json finds in it.
func FuzzFramesOfJSON(f *testing.F) {
	for _, seed := range []string{
		`{"type":"ADDED","object":{}}` + "\n" + `{"type":"DELETED","object":{"a":"}\"{"}}`, `{`, `{}{}`, ` {} [`, `{"a":"\\"}{"b":[{}]}`, `{]}`, "{\"\xff\":1}", `null{}`,
	} {
		f.Add([]byte(seed))
	}
	const limit = 1 << 10
	f.Fuzz(func(t *testing.T, stream []byte) {
		frames, err := framesOf(stream, false, limit)
		if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, ErrTooLarge) && !errors.Is(err, ErrUnreadable) {
			t.Fatalf("the stream ended with %v", err)
		}
		values := json.NewDecoder(bytes.NewReader(stream))
		for i, frame := range frames {
			if len(frame) > limit {
				t.Fatalf("event %d has %d bytes of %d", i, len(frame), limit)
			}
			var value json.RawMessage
			if values.Decode(&value) != nil {
				return // what follows is no JSON, and whoever decodes the event says so
			}
			if !bytes.Equal(value, frame) {
				t.Fatalf("%q: event %d is %q, encoding/json reads %q", stream, i, frame, value)
			}
		}
	})
}

// FuzzFramesOfProtobuf looks for a stream whose events are not what their lengths say, and for a panic in what looks through
// them.
func FuzzFramesOfProtobuf(f *testing.F) {
	f.Add(append(binary.BigEndian.AppendUint32(nil, 4), "\x0a\x02ab\x00\x00\x00\x00"...))
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 1})
	f.Add([]byte{0, 0, 0})
	const limit = 1 << 10
	paths := quantities.NewPaths(scheme.Scheme)
	f.Fuzz(func(t *testing.T, stream []byte) {
		frames, _ := framesOf(stream, true, limit)
		rest := stream
		for i, frame := range frames {
			length := binary.BigEndian.Uint32(rest)
			if length > limit || !bytes.Equal(frame, rest[:lengthPrefix+length]) {
				t.Fatalf("%x: event %d is %x", stream, i, frame)
			}
			rest = rest[lengthPrefix+length:]
			_ = paths.ProtoEvent(frame[lengthPrefix:], quantities.Limits{Objects: 10, Memory: 1 << 20})
		}
	})
}
