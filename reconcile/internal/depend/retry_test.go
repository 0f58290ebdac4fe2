package depend

import (
	"errors"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestWhatTheMemberRefusesIsNotAskedForEverySecond(t *testing.T) {
	for _, err := range []error{nil, apierrors.NewServiceUnavailable("etcd is away"), errors.New("connection refused"), apierrors.NewResourceExpired("too old")} {
		if pause := watchAgain(err, 20, 0.99); pause > watchSoon {
			t.Errorf("after %v the next try waits %s", err, pause)
		}
	}
	if pause := watchAgain(apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "", nil), 20, 0.99); pause != watchPause {
		t.Errorf("after a refusal the next try waits %s", pause)
	}
}

func TestAListWithoutAnEndIsReadLessAndLessOften(t *testing.T) {
	for n, want := range map[uint32]time.Duration{1: watchPause, 2: 2 * watchPause, 4: 8 * watchPause, 6: endlessPause, 1 << 20: endlessPause} {
		if pause := watchAgain(&endlessError{}, n, 0.5); pause != want {
			t.Errorf("after %d tries the next waits %s, want %s", n, pause, want)
		}
	}
}
