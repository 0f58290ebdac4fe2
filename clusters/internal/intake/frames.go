package intake

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/plimsoll-dev/plimsoll/clusters/bodies"
)

// frameReader takes the events of a watch apart: JSON objects one after the other, or protobuf with its length before each.
type frameReader struct {
	from     *bufio.Reader
	limit    int64
	protobuf bool
	grown    func(bytes int) error // called before memory is taken for a large event
	frame    *bytes.Buffer         // of bodies.Shared where it is a large one
}

func newFrameReader(from io.Reader, limit int64, protobuf bool, grown func(bytes int) error) *frameReader {
	return &frameReader{from: bufio.NewReader(from), limit: limit, protobuf: protobuf, grown: grown, frame: new(bytes.Buffer)}
}

const (
	lengthPrefix = 4
	keptFrame    = 64 << 10 // larger buffers are not kept for the next event
)

// next returns the next event with all that belongs to it on the wire. It is good until the call after it.
func (r *frameReader) next() ([]byte, error) {
	r.release()
	r.frame.Reset()
	if r.protobuf {
		return r.nextProtobuf()
	}
	return r.nextJSON()
}

// release gives a large buffer back, whose event has been decoded or will not be. Only who calls next may call it.
func (r *frameReader) release() {
	switch size := r.frame.Cap(); {
	case size > smallPart:
		bodies.Shared.Put(r.frame)
	case size <= keptFrame:
		return
	}
	r.frame = new(bytes.Buffer)
}

// content is the event that next returned.
func (r *frameReader) content() []byte {
	if r.protobuf {
		return r.frame.Bytes()[lengthPrefix:]
	}
	return r.frame.Bytes()
}

func (r *frameReader) tooLarge() error {
	return fmt.Errorf("an event of a watch: %w: it has more than %d bytes", ErrTooLarge, r.limit)
}

func (r *frameReader) nextProtobuf() ([]byte, error) {
	var prefix [lengthPrefix]byte
	if _, err := io.ReadFull(r.from, prefix[:]); err != nil {
		return nil, err
	}
	length := int64(binary.BigEndian.Uint32(prefix[:]))
	if length > r.limit {
		return nil, r.tooLarge()
	}
	if err := r.grown(int(length)); err != nil {
		return nil, err
	}
	if size := int(length) + lengthPrefix; size > smallPart {
		r.frame = bodies.Shared.Get(size)
	}
	r.frame.Write(prefix[:])
	if _, err := io.CopyN(r.frame, r.from, length); err != nil {
		return nil, unexpected(err)
	}
	return r.frame.Bytes(), nil
}

func (r *frameReader) nextJSON() ([]byte, error) {
	depth, quoted, escaped := 0, false, false
	for {
		c, err := r.from.ReadByte()
		if err != nil {
			if depth > 0 {
				err = unexpected(err)
			}
			return nil, err
		}
		if int64(r.frame.Len()) >= r.limit {
			return nil, r.tooLarge()
		}
		if depth == 0 && c != '{' {
			if c == ' ' || c == '\n' || c == '\r' || c == '\t' {
				continue
			}
			return nil, fmt.Errorf("an event of a watch: %w: it is no JSON object", ErrUnreadable)
		}
		if err := r.makeRoom(); err != nil {
			return nil, err
		}
		r.frame.WriteByte(c)
		switch {
		case escaped:
			escaped = false
		case quoted:
			quoted, escaped = c != '"', c == '\\'
		case c == '"':
			quoted = true
		case c == '{' || c == '[':
			depth++
		case c == '}' || c == ']':
			if depth--; depth == 0 {
				return r.frame.Bytes(), nil
			}
		}
	}
}

// makeRoom has a large event grow in few steps and to no more than it may have.
func (r *frameReader) makeRoom() error {
	length := r.frame.Len()
	if length < smallPart || r.frame.Available() > 0 {
		return nil
	}
	if err := r.grown(length + 1); err != nil {
		return err
	}
	larger := bodies.Shared.Get(int(min(4*int64(length), max(r.limit, int64(length)+1))))
	larger.Write(r.frame.Bytes())
	r.release()
	r.frame = larger
	return nil
}

// unexpected is the error of a frame that ends too early.
func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
