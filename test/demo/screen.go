package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"golang.org/x/term"
)

// style is how something is shown on a terminal with colours.
type style string

const (
	plain          style = ""
	bold           style = "1"
	faint          style = "2"
	good           style = "32"
	bad            style = "31"
	notable        style = "33"
	spotColour     style = "36"
	onDemandColour style = "34"
)

// elapsedColumn is where the seconds of a step stand.
const elapsedColumn = 74

// frames are what turns while a step runs.
var frames = []rune("⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏")

// screen is where progress is shown: refreshed in place on a terminal, line by line elsewhere. Use it from one goroutine.
type screen struct {
	out      io.Writer
	terminal bool // can go back and overwrite
	colours  bool
	size     func() (width, height int)
	drawn    int // lines of the live part that are on the terminal
}

// newScreen finds out what the output can do. NO_COLOR is respected (no-color.org).
func newScreen(out *os.File) *screen {
	s := &screen{out: out, size: func() (int, int) { return 80, 24 }}
	if !term.IsTerminal(int(out.Fd())) || os.Getenv("TERM") == "dumb" {
		return s
	}
	s.terminal, s.colours = true, os.Getenv("NO_COLOR") == ""
	s.size = func() (int, int) {
		width, height, err := term.GetSize(int(out.Fd()))
		if err != nil || width <= 0 || height <= 0 {
			return 80, 24
		}
		return width, height
	}
	return s
}

// paint puts text in a style, where there are colours.
func (s *screen) paint(how style, text string) string {
	if !s.colours || how == plain || text == "" {
		return text
	}
	return "\x1b[" + string(how) + "m" + text + "\x1b[0m"
}

// printf prints a line, or several.
func (s *screen) printf(format string, args ...any) { _, _ = fmt.Fprintf(s.out, format+"\n", args...) }

// title prints a heading.
func (s *screen) title(text string) { s.printf("\n%s\n", s.paint(bold, text)) }

// quote prints what a program has said, set apart from what we say.
func (s *screen) quote(text string) {
	for line := range strings.Lines(strings.TrimRight(text, "\n")) {
		s.printf("      %s", s.paint(faint, strings.TrimRight(line, "\n")))
	}
}

// step does something and shows for how long. What it returns is shown in place of what was said before it began.
func (s *screen) step(doing string, do func() (done string, err error)) error {
	begun := time.Now()
	stop := s.spin(doing, begun)
	done, err := do()
	stop()
	if err != nil {
		s.printf("  %s %s", s.paint(bad, "✗"), s.timed(doing, begun))
		return err
	}
	s.printf("  %s %s", s.paint(good, "✓"), s.timed(done, begun))
	return nil
}

// timed puts the seconds since begun behind a text.
func (s *screen) timed(text string, begun time.Time) string {
	gap := max(elapsedColumn-utf8.RuneCountInString(text), 1)
	return fmt.Sprintf("%s%s%s", text, strings.Repeat(" ", gap), s.paint(faint, fmt.Sprintf("%5.1f s", time.Since(begun).Seconds())))
}

// spin shows on a terminal that something goes on, until the function that it returns is called.
func (s *screen) spin(doing string, begun time.Time) (stop func()) {
	if !s.terminal {
		return func() {}
	}
	quit := make(chan struct{})
	var turning sync.WaitGroup
	turning.Go(func() {
		ticks := time.NewTicker(100 * time.Millisecond)
		defer ticks.Stop()
		for turn := 0; ; turn++ {
			line := fmt.Sprintf("  %s %s", s.paint(notable, string(frames[turn%len(frames)])), s.timed(doing, begun))
			width, _ := s.size()
			_, _ = fmt.Fprint(s.out, "\r", cut(line, width-1), "\x1b[K")
			select {
			case <-quit:
				_, _ = fmt.Fprint(s.out, "\r\x1b[K")
				return
			case <-ticks.C:
			}
		}
	})
	return func() {
		close(quit)
		turning.Wait()
	}
}

// live shows lines in place of those that it showed before. It is for terminals only.
func (s *screen) live(lines []string) {
	width, height := s.size()
	if over := len(lines) - (height - 1); over > 0 {
		lines = append(lines[:len(lines)-over-1:len(lines)-over-1], s.paint(faint, fmt.Sprintf("  … %d more lines: make the terminal higher", over+1)))
	}
	var text strings.Builder
	text.WriteString("\x1b[?25l") // no cursor that blinks in the middle of it
	if s.drawn > 0 {
		fmt.Fprintf(&text, "\x1b[%dA\r", s.drawn)
	}
	for _, line := range lines {
		text.WriteString(cut(line, width-1))
		text.WriteString("\x1b[K\n")
	}
	text.WriteString("\x1b[J")
	_, _ = io.WriteString(s.out, text.String())
	s.drawn = len(lines)
}

// endLive leaves what is shown where it is, and gives the cursor back.
func (s *screen) endLive() {
	if s.terminal {
		_, _ = io.WriteString(s.out, "\r\x1b[K\x1b[?25h")
	}
	s.drawn = 0
}

// cut shortens a line to a width in characters; what colours it takes no room.
func cut(line string, width int) string {
	var text strings.Builder
	escape, room := false, width
	for _, r := range line {
		switch {
		case escape:
			escape = r != 'm'
		case r == '\x1b':
			escape = true
		case room == 0:
			continue // colours still end where they end
		default:
			room--
		}
		text.WriteRune(r)
	}
	return text.String()
}
