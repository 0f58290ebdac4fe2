package intake

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	. "github.com/onsi/gomega"
)

func TestEventsAreTakenApartHoweverTheyArrive(t *testing.T) {
	events := []string{`{}`, `{"a":"}"}`, `{"a":"\\\"}\\\\","b":[{"c":{}}]}`, `{"` + strings.Repeat(`\\`, 5000) + `":"{"}`, `{"a":"` + strings.Repeat("b", smallPart) + `"}`}
	stream := " " + strings.Join(events, "\n\t")
	for name, read := range map[string]func(io.Reader) io.Reader{"at once": func(r io.Reader) io.Reader { return r }, "by bytes": iotest.OneByteReader, "by halves": iotest.HalfReader} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			frames := newFrameReader(read(strings.NewReader(stream)), 2*smallPart, false, func(int) error { return nil })
			for _, event := range events {
				frame, err := frames.next()
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(string(frame) == event).To(BeTrue(), "%.50s", frame)
			}
			_, err := frames.next()
			g.Expect(err).To(MatchError(io.EOF))
		})
	}
}

func TestAnEventMayHaveAsManyBytesAsTheLimit(t *testing.T) {
	g := NewWithT(t)
	const limit = 10_000
	for size, fits := range map[int]bool{limit - 1: true, limit: true, limit + 1: false} {
		event := `{"a":"` + strings.Repeat("b", size-8) + `"}`
		frame, err := newFrameReader(strings.NewReader(event), limit, false, func(int) error { return nil }).next()
		g.Expect(errors.Is(err, ErrTooLarge)).To(Equal(!fits), "%d bytes", size)
		g.Expect(len(frame) == size).To(Equal(fits))
	}
}

func TestAnEventOfProtobufMayHaveAsManyBytesAsTheLimit(t *testing.T) {
	g := NewWithT(t)
	const limit = 10_000
	for size, fits := range map[int]bool{limit: true, limit + 1: false, 2 * limit: false} {
		stream := append(binary.BigEndian.AppendUint32(nil, uint32(size)), make([]byte, size)...)
		frame, err := newFrameReader(bytes.NewReader(stream), limit, true, func(int) error { return nil }).next()
		g.Expect(errors.Is(err, ErrTooLarge)).To(Equal(!fits), "%d bytes", size)
		g.Expect(len(frame) == lengthPrefix+size).To(Equal(fits))
	}
}

func TestALargeEventAsksBeforeItGrows(t *testing.T) {
	g := NewWithT(t)
	full := errors.New("full")
	asked := 0
	_, err := newFrameReader(strings.NewReader(`{"a":"`+strings.Repeat("b", 2*smallPart)), 4*smallPart, false, func(bytes int) error {
		asked = bytes
		return full
	}).next()
	g.Expect(err).To(MatchError(full))
	g.Expect(asked).To(And(BeNumerically(">", smallPart), BeNumerically("<=", smallPart+64<<10)))
}

func BenchmarkFramesOfJSON(b *testing.B) {
	for _, size := range []int{1 << 10, 1 << 20} {
		event := []byte(`{"type":"ADDED","object":{"metadata":{"labels":{` + strings.Repeat(`"some-label":"a value",`, size/23) + `"last":"x"}}}}` + "\n")
		b.Run(fmt.Sprintf("%dKiB", size>>10), func(b *testing.B) {
			b.SetBytes(int64(len(event)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := newFrameReader(bytes.NewReader(event), 4<<20, false, func(int) error { return nil }).next(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// endlessly repeats a text, and counts what was read of it.
type endlessly struct {
	text string
	read int
}

func (e *endlessly) Read(p []byte) (int, error) {
	if e.read > 64<<20 {
		return 0, errors.New("all of it was read")
	}
	for i := range p {
		p[i] = e.text[(e.read+i)%len(e.text)]
	}
	e.read += len(p)
	return len(p), nil
}

// White space is no event, and so waits for no other: it would keep a processor as busy as its member likes.
func TestWhiteSpaceWithoutEndIsReadByNobody(t *testing.T) {
	g := NewWithT(t)
	from := &endlessly{text: " \n\t\r"}
	_, err := newFrameReader(from, 4<<20, false, func(int) error { return nil }).next()
	g.Expect(err).To(MatchError(ErrUnreadable))
	g.Expect(from.read).To(BeNumerically("<=", 64<<10))
}
