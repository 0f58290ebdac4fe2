package calls

import (
	"bytes"
	"io"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"
)

func TestALargeBodyIsReadInPieces(t *testing.T) {
	body := bytes.Repeat([]byte("large "), 2*Piece) // 12 pieces
	for name, from := range map[string]io.Reader{
		"as it comes":   bytes.NewReader(body),
		"byte for byte": iotest.OneByteReader(bytes.NewReader(body)),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := NewWithT(t)
				began := time.Now()
				read := InPieces(io.NopCloser(from))
				g.Expect(io.CopyN(io.Discard, read, Piece)).To(BeEquivalentTo(Piece))
				g.Expect(time.Since(began)).To(BeZero(), "the first piece needs no pause")
				rest, err := io.ReadAll(read)
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(rest).To(Equal(body[Piece:]))
				g.Expect(time.Since(began)).To(Equal(12 * pause))
				g.Expect(read.Close()).To(Succeed())
			})
		})
	}
}
