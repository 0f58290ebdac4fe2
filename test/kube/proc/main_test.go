package proc_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/plimsoll-dev/plimsoll/test/kube/proc"
)

// parentVariable in the environment makes the test binary start a process with the log that it names, and wait to be killed.
const parentVariable = "PLIMSOLL_PROC_PARENT"

func TestMain(m *testing.M) {
	log := os.Getenv(parentVariable)
	if log == "" {
		os.Exit(m.Run())
	}
	if _, err := proc.Start(proc.Command{Program: "sh", Args: []string{"-c", `echo $$; while :; do sleep 0.05; done`}, Env: os.Environ(), Log: log}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	select {}
}
