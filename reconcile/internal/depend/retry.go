package depend

import (
	"errors"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/plimsoll-dev/plimsoll/reconcile/internal/retry"
)

const (
	// watchPause is the longest time between two tries to watch what the member refuses, and the shortest between two tries to watch what
	// it cannot list in a number of pages.
	watchPause = 30 * time.Second
	// endlessPause is the longest time between two tries to watch what the member cannot list in a number of pages: each reads all of these.
	endlessPause = 10 * time.Minute
	// watchSoon is the longest time between two tries to watch what ended, or failed for the moment.
	watchSoon = time.Second
)

// watchAgain is how long the next try to watch waits after n that failed in a row, the last with err; nil: the watch ended.
// random is in [0, 1).
func watchAgain(err error, n uint32, random float64) time.Duration {
	if errors.As(err, new(*endlessError)) {
		return retry.Pace{First: watchPause, Most: endlessPause}.Backoff(n, random)
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return retry.Jitter(watchSoon*9/10, random)
	}
	switch code := status.Status().Code; {
	case code == http.StatusTooManyRequests, code == http.StatusGone, code >= http.StatusInternalServerError:
		return retry.Jitter(watchSoon*9/10, random)
	}
	return min(retry.Backoff(n, random), watchPause)
}

// WatchAges returns for how long a watch for dependencies in each member has been closed, the longest; 0: all are open.
func (ds *Index) WatchAges() map[string]time.Duration {
	ds.mu.Lock()
	defer ds.mu.Unlock()
	ages := map[string]time.Duration{}
	for p, w := range ds.watches {
		age := time.Duration(0)
		if !w.synced && w.cancel != nil {
			age = time.Since(w.closed)
		}
		ages[p.member] = max(ages[p.member], age)
	}
	return ages
}
