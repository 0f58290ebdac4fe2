package notify_test

import (
	"testing"

	"github.com/plimsoll-dev/plimsoll/internal/notify"
)

func TestSignalsUntilTheGoroutineWaitsAreOne(t *testing.T) {
	wake := notify.New()
	for range 3 {
		wake.Signal() // blocks nobody
	}
	<-wake
	select {
	case <-wake:
		t.Error("it wakes a second time")
	default:
	}
	wake.Signal()
	<-wake
}

func TestNoWakeIsNeverWoken(*testing.T) {
	var none notify.Wake
	none.Signal()
}
