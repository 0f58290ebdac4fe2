package hub

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	// A test that waits has no need to be quick: the machine may be busy with other things.
	SetDefaultEventuallyTimeout(time.Minute)
	goleak.VerifyTestMain(m)
}
