package rest

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// deadlines is a response whose call ends when its write deadline is over, as that of HTTP/2 does.
type deadlines struct {
	*httptest.ResponseRecorder
	end  context.CancelFunc
	over *time.Timer
}

// SetWriteDeadline is for [http.ResponseController].
func (d *deadlines) SetWriteDeadline(at time.Time) error {
	if d.over != nil {
		d.over.Stop()
	}
	if !at.IsZero() {
		d.over = time.AfterFunc(time.Until(at), d.end)
	}
	return nil
}

// A message is written and then flushed. The deadline is over wherever the call is at that moment.
func TestACallThatItsDeadlineEndsSaysThatItsReaderTookNothing(t *testing.T) {
	const patience = time.Second
	for name, c := range map[string]struct{ flushed bool }{
		"between the write and the flush":         {false},
		"it has no deadline, the reader has gone": {true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, end := context.WithCancel(t.Context())
				defer end()
				w, r := openEnded(&deadlines{ResponseRecorder: httptest.NewRecorder(), end: end},
					httptest.NewRequestWithContext(ctx, http.MethodGet, "/v1/objects:watch", nil), patience)
				if _, err := w.Write([]byte("{}")); err != nil {
					t.Fatal(err)
				}
				if c.flushed {
					if err := http.NewResponseController(w).Flush(); err != nil {
						t.Fatal(err)
					}
					time.AfterFunc(2*patience, end)
				}
				<-r.Context().Done()
				cause := context.Cause(r.Context())
				if aborted := status.Code(cause) == codes.Aborted; aborted == c.flushed {
					t.Errorf("it ends with %v", cause)
				}
			})
		})
	}
}
