package clusters

import (
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	"go.uber.org/goleak"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/plimsoll-dev/plimsoll/clusters/internal/sample"
)

// libraryLog is what client-go and controller-runtime log in all tests, debugging lines included. The fake members answer
// every error with the canary.
var libraryLog = &syncBuffer{}

func TestMain(m *testing.M) {
	SetDefaultEventuallyTimeout(time.Minute)
	SetDefaultEventuallyPollingInterval(10 * time.Millisecond)
	logger := logr.FromSlogHandler(slog.NewTextHandler(libraryLog, &slog.HandlerOptions{Level: slog.Level(-4)}))
	log.SetLogger(logger)
	klog.SetLogger(logger)
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		if code == 0 && strings.Contains(libraryLog.String(), sample.Canary) {
			fmt.Fprintf(os.Stderr, "the libraries' log shows a secret:\n%s\n", libraryLog.String())
			code = 1
		}
		os.Exit(code)
	}))
}
