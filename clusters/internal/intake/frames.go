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
	// maxSpace is how many bytes of white space may stand before an event; API servers write a line break. No pace holds it up, which
	// counts events.
	maxSpace = 1 << 10
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
	if r.frame.Cap() > keptFrame {
		release(r.frame)
		r.frame = new(bytes.Buffer)
	}
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
	if err := r.toObject(); err != nil {
		return nil, err
	}
	var object objectScan
	for {
		if _, err := r.from.Peek(1); err != nil {
			return nil, unexpected(err)
		}
		text, _ := r.from.Peek(r.from.Buffered())
		left := r.limit - int64(r.frame.Len())
		n, ended := object.scan(text[:min(int64(len(text)), left)])
		if n == 0 {
			return nil, r.tooLarge()
		}
		if err := r.makeRoom(n); err != nil {
			return nil, err
		}
		r.frame.Write(text[:n])
		_, _ = r.from.Discard(n) // it has them
		if ended {
			return r.frame.Bytes(), nil
		}
	}
}

// toObject goes past the white space before an object.
func (r *frameReader) toObject() error {
	for range maxSpace {
		c, err := r.from.ReadByte()
		switch {
		case err != nil:
			return err
		case c == '{':
			return r.from.UnreadByte()
		case c != ' ' && c != '\n' && c != '\r' && c != '\t':
			return fmt.Errorf("an event of a watch: %w: it is no JSON object", ErrUnreadable)
		}
	}
	return fmt.Errorf("an event of a watch: %w: there are more than %d bytes of white space before it", ErrUnreadable, maxSpace)
}

// objectScan finds the end of a JSON object. It checks nothing else: who decodes the object does.
type objectScan struct {
	depth           int
	quoted, escaped bool
}

// Bytes that mean something in a string, and elsewhere.
var (
	inString  = [256]bool{'"': true, '\\': true}
	elsewhere = [256]bool{'"': true, '{': true, '[': true, '}': true, ']': true}
)

// scan goes on through text, and returns how many bytes of it belong to the object, and whether it has ended.
func (s *objectScan) scan(text []byte) (n int, ended bool) {
	for i := 0; ; i++ {
		if s.escaped && i < len(text) {
			s.escaped = false
			i++
		}
		means := &elsewhere
		if s.quoted {
			means = &inString
		}
		for i < len(text) && !means[text[i]] {
			i++
		}
		if i >= len(text) {
			return len(text), false
		}
		switch text[i] {
		case '\\':
			s.escaped = true
		case '"':
			s.quoted = !s.quoted
		case '{', '[':
			s.depth++
		default:
			if s.depth--; s.depth == 0 {
				return i + 1, true
			}
		}
	}
}

// makeRoom has an event grow by so many bytes; a large one grows in few steps and to no more than it may have.
func (r *frameReader) makeRoom(bytes int) error {
	length := r.frame.Len()
	if length+bytes <= smallPart || r.frame.Available() >= bytes {
		return nil
	}
	if err := r.grown(length + bytes); err != nil {
		return err
	}
	r.frame = larger(r.frame, int(min(4*int64(length+bytes), max(r.limit, int64(length+bytes)))))
	return nil
}

// unexpected is the error of a frame that ends too early.
func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
