package calls

import (
	"io"
	"time"
)

const (
	// LargeCall is how many bytes a call may have without counting as large; pods of real services have some kilobytes.
	LargeCall = 256 << 10
	// Piece is how many bytes of a large call are worked on at a time: some tenths of a millisecond.
	Piece = 64 << 10
	// pause is how long the work on a large call rests after each piece. A timer that short takes up to a millisecond.
	pause = 500 * time.Microsecond
)

// Pause lets everything else that the hub has to do go first. Go looks for what has come from the network when a processor has nothing
// to do, or after 10 ms: two large calls at a time, on two processors, would hold up all others for as long, even if they let other
// goroutines run.
func Pause() { time.Sleep(pause) }

// InPieces reads the body of a large call and rests after each piece.
func InPieces(body io.ReadCloser) io.ReadCloser { return &pieces{ReadCloser: body} }

type pieces struct {
	io.ReadCloser
	read int // of this piece
}

// Read implements [io.Reader].
func (p *pieces) Read(into []byte) (int, error) {
	if p.read >= Piece {
		p.read = 0
		Pause()
	}
	n, err := p.ReadCloser.Read(into[:min(len(into), Piece-p.read)])
	p.read += n
	return n, err
}
