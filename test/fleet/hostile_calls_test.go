package fleet

import (
	"io"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

func TestARepeatedTextIsTheSameInReadsOfAnySize(t *testing.T) {
	g := NewWithT(t)
	for _, size := range []int{2, 3, 7, 512, 32<<10 + 1} {
		text, err := io.ReadAll(bySize{&repeated{text: "0,", left: 200_000}, size})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(string(text) == strings.Repeat("0,", 100_000)).To(BeTrue(), "in reads of %d bytes", size)
	}
	one, err := io.ReadAll(bySize{&repeated{text: "[", left: 5}, 1})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(one)).To(Equal("[[[[["))
}

// bySize reads so many bytes at a time at most.
type bySize struct {
	io.Reader
	size int
}

func (b bySize) Read(p []byte) (int, error) { return b.Reader.Read(p[:min(len(p), b.size)]) }
