package kube_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/plimsoll-dev/plimsoll/test/kube"
	"github.com/plimsoll-dev/plimsoll/test/kube/proc"
)

// victimVariable in the environment makes the test binary start a cluster and wait to be killed.
const victimVariable = "PLIMSOLL_TESTBED_VICTIM"

// victim is what it says about its cluster.
type victim struct {
	Dir  string
	Pids map[kube.Component]int
}

// beTheVictim runs in a process of its own.
func beTheVictim() {
	c, err := kube.Start(context.Background(), kube.Options{Name: "victim"})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(string(mustJSON(victim{Dir: c.Dir(), Pids: c.Pids()})))
	select {}
}

// alive reports whether a process is there, and is more than a dead one that init has not reaped yet.
func alive(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return syscall.Kill(pid, 0) == nil // gone, or a system without /proc
	}
	_, state, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(state, "Z")
}

func TestNothingIsLeftOfAClusterWhoseProcessWasKilled(t *testing.T) {
	g := NewWithT(t)
	temp := t.TempDir()
	log := filepath.Join(t.TempDir(), "victim")
	owner, err := proc.Start(proc.Command{Name: "victim", Program: os.Args[0], Env: append(os.Environ(), victimVariable+"=1", "TMPDIR="+temp), Log: log})
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { _ = owner.Kill() })

	var line string
	g.Expect(owner.AwaitReady(t.Context(), proc.FirstLine(log, &line))).To(Succeed(), "it starts its cluster, or says why not")
	var left victim
	g.Expect(json.Unmarshal([]byte(line), &left)).To(Succeed())
	g.Expect(left.Pids).To(HaveLen(5))
	for component, pid := range left.Pids {
		g.Expect(alive(pid)).To(BeTrue(), "%s", component)
	}

	// A second owner of clusters on the same machine leaves those of the living alone.
	t.Setenv("TMPDIR", temp)
	first := kube.New(t, kube.Options{Name: "bystander", Minimal: true})
	g.Expect(first.Stop()).To(Succeed())
	g.Expect(left.Dir).To(BeADirectory())
	for component, pid := range left.Pids {
		g.Expect(alive(pid)).To(BeTrue(), "%s", component)
	}

	g.Expect(owner.Kill()).To(Succeed())
	for component, pid := range left.Pids {
		g.Eventually(func() bool { return alive(pid) }, patience).Should(BeFalse(), "%s outlived its owner", component)
	}
	second := kube.New(t, kube.Options{Name: "next", Minimal: true})
	g.Expect(second.Stop()).To(Succeed())
	files, err := filepath.Glob(filepath.Join(temp, "*", "*"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(files).To(BeEmpty(), "the next start sweeps what the dead left on disk")
}
