package proc_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/plimsoll-dev/plimsoll/test/kube/proc"
)

// patience is how long anything may take. It takes milliseconds.
const patience = time.Minute

// obedient says that it is up, and ends in order when it is asked to.
const obedient = `trap 'echo goodbye; exit 0' TERM; echo up; while :; do sleep 0.05; done`

// deaf does not end when it is asked to.
const deaf = `trap '' TERM; echo up; while :; do sleep 0.05; done`

// shell starts a script and returns the process and its log.
func shell(t *testing.T, script string) (*proc.Process, string) {
	t.Helper()
	log := filepath.Join(t.TempDir(), "log")
	p, err := proc.Start(proc.Command{Name: "it", Program: "sh", Args: []string{"-c", script}, Env: os.Environ(), Log: log})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Kill() })
	return p, log
}

// up is a script that has said that it is up.
func up(t *testing.T, script string) (*proc.Process, string) {
	t.Helper()
	p, log := shell(t, script)
	var said string
	if err := p.AwaitReady(within(t, patience), proc.FirstLine(log, &said)); err != nil {
		t.Fatal(err)
	}
	if said != "up" {
		t.Fatalf("the first line is %q", said)
	}
	return p, log
}

func within(t *testing.T, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

func TestAProcessEndsInOrderWhenItIsStopped(t *testing.T) {
	g := NewWithT(t)
	p, log := up(t, obedient)
	g.Expect(p.Ended()).To(BeFalse())
	g.Expect(p.Failure()).To(Succeed())
	g.Expect(p.Stop(within(t, patience))).To(Succeed())
	g.Expect(p.Done()).To(BeClosed())
	g.Expect(p.Wait()).To(Succeed())
	g.Expect(p.Failure()).To(Succeed(), "it was asked to end")
	g.Expect(proc.Tail(log, 1)).To(Equal("goodbye"))
	g.Expect(errors.Join(p.Stop(within(t, patience)), p.Kill(), p.Freeze(), p.Thaw())).To(Succeed(), "what has ended already has ended")
	g.Expect(p.Frozen()).To(BeFalse())
}

func TestAProcessThatDoesNotEndInTimeIsKilled(t *testing.T) {
	g := NewWithT(t)
	p, _ := up(t, deaf)
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("no more patience"))
	g.Expect(p.Stop(ctx)).To(MatchError(And(ContainSubstring("was killed"), ContainSubstring("no more patience"), HaveSuffix("ends with:\nup"))))
	g.Expect(p.Done()).To(BeClosed())
	g.Expect(p.Wait()).To(MatchError(ContainSubstring("killed")))
	g.Expect(p.Failure()).To(Succeed())
}

func TestTheEndOfAProcessIsAnEventThatQuotesItsLog(t *testing.T) {
	g := NewWithT(t)
	p, _ := shell(t, `echo no such thing; exit 3`)
	g.Eventually(p.Done(), patience).Should(BeClosed())
	told := And(HavePrefix("it has ended: exit status 3"), HaveSuffix("ends with:\nno such thing"))
	g.Expect(p.Wait()).To(MatchError(told))
	g.Expect(p.Failure()).To(MatchError(told))
	g.Expect(p.Kill()).To(Succeed())
	g.Expect(p.Failure()).To(MatchError(told), "who kills it later has not asked it to end")

	p, _ = shell(t, `exit 0`)
	g.Expect(p.Wait()).To(Succeed())
	g.Expect(p.Failure()).To(MatchError(And(ContainSubstring("exit status 0"), HaveSuffix("is empty"))))
}

func TestAFrozenProcessHearsNothingUntilItThaws(t *testing.T) {
	g := NewWithT(t)
	p, log := up(t, obedient)
	g.Expect(p.Freeze()).To(Succeed())
	g.Expect(p.Frozen()).To(BeTrue())
	if runtime.GOOS == "linux" {
		g.Expect(state(p.Pid())).To(Equal("T"), "it has stopped when Freeze returns")
	}
	g.Expect(p.Terminate()).To(Succeed())
	g.Expect(p.Ended()).To(BeFalse())
	g.Expect(p.Thaw()).To(Succeed())
	g.Expect(p.Wait()).To(Succeed())
	g.Expect(proc.Tail(log, 1)).To(Equal("goodbye"))

	p, log = up(t, obedient)
	g.Expect(p.Freeze()).To(Succeed())
	g.Expect(p.Stop(within(t, patience))).To(Succeed(), "Stop thaws it")
	g.Expect(proc.Tail(log, 1)).To(Equal("goodbye"))

	p, _ = up(t, obedient)
	g.Expect(p.Freeze()).To(Succeed())
	g.Expect(p.Kill()).To(Succeed())
}

// state is a process's state in /proc, and empty when there is none.
func state(pid int) string {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return ""
	}
	return strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))[0]
}

func TestAProcessIsAskedToEndOnce(t *testing.T) {
	g := NewWithT(t)
	p, log := up(t, `n=0; trap 'n=$((n+1)); echo asked $n' TERM; echo up; while [ $n = 0 ]; do sleep 0.05; done; sleep 0.2`)
	for range 3 {
		g.Expect(p.Terminate()).To(Succeed())
	}
	g.Expect(p.Stop(within(t, patience))).To(Succeed())
	g.Expect(proc.Tail(log, 20)).To(Equal("up\nasked 1"))
}

func TestWaitingForAProcessEndsWhenItIsReadyHasEndedOrTakesTooLong(t *testing.T) {
	g := NewWithT(t)
	var asked atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if asked.Add(1) < 3 {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	defer server.Close()
	p, _ := up(t, obedient)
	g.Expect(p.AwaitReady(within(t, patience), proc.OK(nil, server.URL))).To(Succeed())
	g.Expect(asked.Load()).To(BeEquivalentTo(3))

	ctx, cancel := context.WithCancelCause(t.Context())
	err := p.AwaitReady(ctx, func(context.Context) error {
		cancel(errors.New("the demo ends"))
		return errors.New("cut off")
	})
	g.Expect(err).To(MatchError(And(HavePrefix("wait for it to be ready: the demo ends"), HaveSuffix("ends with:\nup"))))
	g.Expect(err).NotTo(MatchError(ContainSubstring("cut off")))

	asked.Store(-1000000)
	ctx, cancel = context.WithCancelCause(t.Context())
	go func() {
		for asked.Load() < -999997 {
			time.Sleep(time.Millisecond)
		}
		cancel(nil)
	}()
	g.Expect(p.AwaitReady(ctx, proc.OK(server.Client(), server.URL))).To(MatchError(ContainSubstring("answers 503 Service Unavailable")))

	p, _ = shell(t, `echo the port is taken; exit 1`)
	g.Expect(p.AwaitReady(t.Context(), func(context.Context) error { return errors.New("nobody answers") })).
		To(MatchError(And(ContainSubstring("exit status 1"), HaveSuffix("the port is taken"))))
	g.Expect(p.AwaitReady(t.Context(), func(context.Context) error { return nil })).
		To(MatchError(ContainSubstring("exit status 1")), "another server has answered")
}

func TestAProgramSeesItsOwnEnvironmentDirectoryAndInput(t *testing.T) {
	g := NewWithT(t)
	t.Setenv("KUBECONFIG", "/elsewhere")
	dir, err := filepath.EvalSymlinks(t.TempDir())
	g.Expect(err).NotTo(HaveOccurred())
	var out bytes.Buffer
	command := proc.Command{
		Program: "/bin/sh", Args: []string{"-c", `echo "$KUBECONFIG,$ONE"; pwd; cat; echo aside >&2`}, Env: []string{"ONE=1", "PATH=" + os.Getenv("PATH")},
		Dir: dir, Log: filepath.Join(dir, "log"), Stdin: strings.NewReader("input\n"), Stdout: &out,
	}
	p, err := proc.Start(command)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(p.Wait()).To(Succeed())
	g.Expect(out.String()).To(Equal(",1\n" + dir + "\ninput\n"))
	g.Expect(proc.Tail(command.Log, 20)).To(Equal("aside"))

	// A log is appended to, and without an environment there is none.
	command.Env, command.Stdin, command.Stdout = nil, nil, nil
	command.Args = []string{"-c", `echo "now $KUBECONFIG"`}
	p, err = proc.Start(command)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(p.Wait()).To(Succeed())
	g.Expect(proc.Tail(command.Log, 20)).To(Equal("aside\nnow"))
	g.Expect(proc.Tail(command.Log, 1)).To(Equal("now"))
	g.Expect(proc.Tail(filepath.Join(dir, "none"), 1)).To(BeEmpty())
}

func TestAProgramThatDoesNotStartIsNamed(t *testing.T) {
	g := NewWithT(t)
	_, err := proc.Start(proc.Command{Program: "/no/such/program"})
	g.Expect(err).To(MatchError(HavePrefix("start program: ")))
	_, err = proc.Start(proc.Command{Program: "sh", Log: "/no/such/log"})
	g.Expect(err).To(MatchError(HavePrefix("start sh: open its log: ")))
}

func TestAProcessDiesWithTheOneThatStartedIt(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux has a signal for it")
	}
	g := NewWithT(t)
	log := filepath.Join(t.TempDir(), "child")
	self, err := os.Executable()
	g.Expect(err).NotTo(HaveOccurred())
	parent, err := proc.Start(proc.Command{Program: self, Env: append(os.Environ(), parentVariable+"="+log)})
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { _ = parent.Kill() })
	var line string
	g.Expect(parent.AwaitReady(within(t, patience), proc.FirstLine(log, &line))).To(Succeed())
	child, err := strconv.Atoi(line)
	g.Expect(err).NotTo(HaveOccurred())
	group, err := syscall.Getpgid(child)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(group).To(Equal(child), "it has a process group of its own")

	g.Expect(parent.Kill()).To(Succeed())
	g.Eventually(func() string { return state(child) }, patience).Should(BeElementOf("", "Z"), "gone, or not reaped yet")
}

func TestMemoryAndProcessorTimeOfAProcessAreRead(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux has /proc")
	}
	g := NewWithT(t)
	p, _ := up(t, `echo up; while :; do :; done`)
	g.Eventually(p.Processor, patience).Should(BeNumerically(">", 0))
	now, err := p.RSS()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(now).To(And(BeNumerically(">", 100<<10), BeNumerically("<", 1<<30)))
	g.Expect(p.PeakRSS()).To(And(BeNumerically(">=", now), BeNumerically("<", 1<<30)))
	g.Expect(p.Kill()).To(Succeed())
	_, err = p.RSS()
	g.Expect(err).To(HaveOccurred())
	_, err = p.Processor()
	g.Expect(err).To(HaveOccurred())
}
