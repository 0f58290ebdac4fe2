package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

// terminal is a screen that writes what a terminal of this size would get.
func terminal(width, height int) (*screen, *bytes.Buffer) {
	var out bytes.Buffer
	return &screen{out: &out, terminal: true, colours: true, size: func() (int, int) { return width, height }}, &out
}

func TestAFileGetsNeitherColoursNorMovesOfTheCursor(t *testing.T) {
	g := NewWithT(t)
	path := filepath.Join(t.TempDir(), "out")
	file, err := os.Create(path)
	g.Expect(err).NotTo(HaveOccurred())
	s := newScreen(file)
	s.title("heading")
	g.Expect(s.step("doing", func() (string, error) { return "done", nil })).To(Succeed())
	s.quote("said\nmore\n")
	s.endLive()
	g.Expect(file.Close()).To(Succeed())

	written := read(t, path)
	g.Expect(written).To(ContainSubstring("✓ done"))
	g.Expect(written).To(ContainSubstring("\n      said\n      more\n"))
	g.Expect(written).NotTo(ContainSubstring("\x1b"))
	g.Expect(written).NotTo(ContainSubstring("\r"))
}

func TestNoColorIsRespected(t *testing.T) {
	s, out := terminal(80, 24)
	s.colours = false
	s.title("heading")
	s.live(s.table([][]cell{{styled("a", bold)}}))
	NewWithT(t).Expect(out.String()).NotTo(MatchRegexp(`\x1b\[[0-9;]*m`))
}

func TestAStepThatFailsShowsWhatItWasAbout(t *testing.T) {
	g := NewWithT(t)
	var out bytes.Buffer
	s := &screen{out: &out}
	broken := errors.New("broken")
	g.Expect(s.step("doing it", func() (string, error) { return "it is done", broken })).To(MatchError(broken))
	g.Expect(out.String()).To(ContainSubstring("✗ doing it"))
	g.Expect(out.String()).NotTo(ContainSubstring("it is done"))
}

func TestTheLivePartIsDrawnOverItselfAndNeverWiderOrHigherThanTheTerminal(t *testing.T) {
	g := NewWithT(t)
	s, out := terminal(10, 4)
	s.live([]string{"one", s.paint(good, "a line that is too long"), "three", "four", "five"})
	g.Expect(out.String()).NotTo(ContainSubstring("A\r"), "the first drawing goes back nowhere")
	g.Expect(out.String()).To(ContainSubstring("\x1b[32ma line th\x1b[0m"), "colours end though the line is cut")
	g.Expect(strings.Count(out.String(), "\n")).To(Equal(3), "one line of the terminal is the cursor's")
	g.Expect(out.String()).NotTo(ContainSubstring("three"))

	out.Reset()
	s.live([]string{"six"})
	g.Expect(out.String()).To(HavePrefix("\x1b[?25l\x1b[3A\r"), "back over the three lines of before")
	g.Expect(out.String()).To(HaveSuffix("\x1b[J"), "what was below is gone")

	out.Reset()
	s.endLive()
	g.Expect(out.String()).To(HaveSuffix("\x1b[?25h"), "the cursor is back")
}

func TestColumnsLineUpWhateverTheirColours(t *testing.T) {
	s := &screen{}
	got := s.table([][]cell{
		heads("CLUSTER", "SPOT"),
		{styled("eu", bold), {{"██", onDemandColour}, {"░", spotColour}}},
		{styled("a longer one", plain), styled("", plain)},
	})
	NewWithT(t).Expect(got).To(Equal([]string{
		"  CLUSTER       SPOT",
		"  eu            ██░",
		"  a longer one",
	}))
}
