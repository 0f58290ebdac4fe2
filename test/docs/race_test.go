package docs

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// What go test -race prints, by the cause of the failure.
const (
	passed = "ok  \texample.com/module/fine\t1.0s\n"
	// Go's output for a signal outside Go code, shortened.
	crash = "SIGSEGV: segmentation violation\nPC=0x41ca09 m=0 sigcode=1 addr=0x0\n\ngoroutine 0 gp=0x1 m=0 mp=0x1 [idle]:\n\nrax    0x0\ngs     0x0\n" +
		"FAIL\texample.com/module/crashed\t9.182s\n"
	check = "ThreadSanitizer: CHECK failed: tsan_rtl.cpp:346 \"((exiting)) != (0)\" (0x0, 0x0) (tid=1)\n" +
		"exit status 66\nFAIL\texample.com/module/checked\t1.0s\n"
	failed   = "--- FAIL: TestA (0.00s)\n    a_test.go:3: no\nFAIL\nFAIL\texample.com/module/failed\t0.1s\n"
	panicked = "panic: runtime error: invalid memory address or nil pointer dereference\n[signal SIGSEGV: segmentation violation code=0x1 addr=0x0 pc=0x1]\n" +
		"FAIL\texample.com/module/panicked\t0.1s\n"
	race  = "WARNING: DATA RACE\n"
	total = "FAIL\n"
)

// A run may be repeated only because the race detector crashed: no failed test, panic or data race may be hidden so.
func TestOnlyACrashOfTheRaceDetectorIsRepeated(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		printed  string
		repeated string // the packages
	}{
		"a signal":                         {passed + crash + total, "example.com/module/crashed"},
		"check":                            {check + passed + total, "example.com/module/checked"},
		"both":                             {crash + check + total, "example.com/module/crashed example.com/module/checked"},
		"failed test":                      {failed + passed + total, ""},
		"panic":                            {panicked + total, ""},
		"failed beside a crash":            {failed + crash + total, ""},
		"crash after a failed test":        {"--- FAIL: TestA (0.00s)\n" + crash + total, ""},
		"crash after a failed parallel":    {"    --- FAIL: TestA/b (0.00s)\n" + crash + total, ""},
		"crash after a data race":          {race + crash + total, ""},
		"compiler":                         {"# example.com/module/broken\na.go:1: undefined: x\nFAIL\texample.com/module/broken [build failed]\n" + total, ""},
		"text of a signal in a test's log": {"    a_test.go:3: SIGSEGV: segmentation violation\n" + failed + total, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			// The first run prints what the case has, and fails; the second one passes. Both record their arguments.
			fake := filepath.Join(dir, "go")
			script := "#!/bin/sh\necho \"$@\" >>" + dir + "/calls\n" +
				"[ -e " + dir + "/second ] && exit 0\ntouch " + dir + "/second\ncat " + dir + "/printed\nexit 1\n"
			write(t, fake, script)
			write(t, filepath.Join(dir, "printed"), test.printed)

			run := exec.CommandContext(t.Context(), "sh", filepath.Join(root, "tools", "race.sh"), "./a ./b", "-timeout", "1m")
			run.Env = append(os.Environ(), "GO="+fake)
			out, err := run.CombinedOutput()
			calls, readErr := os.ReadFile(filepath.Join(dir, "calls"))
			if readErr != nil {
				t.Fatalf("%v after %v:\n%s", readErr, err, out)
			}

			expected := "test -race -timeout 1m ./a ./b\n"
			if test.repeated != "" {
				expected += "test -race -timeout 1m -cpu 1 " + test.repeated + "\n"
			}
			if string(calls) != expected {
				t.Errorf("calls: %q, expected %q", calls, expected)
			}
			if (err == nil) != (test.repeated != "") {
				t.Errorf("race.sh ended with %v", err)
			}
			if !strings.HasPrefix(string(out), test.printed) {
				t.Errorf("the output does not begin with that of go test:\n%s", out)
			}
		})
	}
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o700); err != nil {
		t.Fatal(err)
	}
}
