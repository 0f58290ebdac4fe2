package webhook

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestAnOwnerThatDoesNotAnswerCostsOneAdmissionASecondItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s silentOwners
		if !s.mayAsk("a") {
			t.Fatal("an owner that nobody asked yet is not asked")
		}
		s.asked("a", context.DeadlineExceeded)
		if s.mayAsk("a") {
			t.Error("it is asked again at once")
		}
		if !s.mayAsk("b") {
			t.Error("another owner is not asked")
		}
		time.Sleep(askSilentEvery)
		if !s.mayAsk("a") || s.mayAsk("a") {
			t.Error("a second later not exactly one admission asks it")
		}
		s.asked("a", errors.New("refused")) // something answers
		for range 2 {
			if !s.mayAsk("a") {
				t.Error("an owner that answers again is not asked")
			}
		}
	})
}
