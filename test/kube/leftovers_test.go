package kube

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/onsi/gomega"

	"github.com/plimsoll-dev/plimsoll/test/kube/proc"
)

// deadRecord is a record whose owner has died: nobody has it locked.
func deadRecord(t *testing.T, left note) string {
	t.Helper()
	g := gomega.NewWithT(t)
	r, err := newRecord(left.Dir, left.Remove)
	g.Expect(err).NotTo(gomega.HaveOccurred())
	for _, pid := range left.Pids {
		g.Expect(r.add(pid)).To(gomega.Succeed())
	}
	g.Expect(r.file.Close()).To(gomega.Succeed())
	return r.path()
}

func TestASweepKillsOnlyProcessesOfTheClusterThatIsGone(t *testing.T) {
	g := gomega.NewWithT(t)
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	dir := filepath.Join(temp, "plimsoll-gone-1")
	g.Expect(os.Mkdir(dir, 0o700)).To(gomega.Succeed())

	state := filepath.Join(dir, "etcd")
	g.Expect(os.WriteFile(state, nil, 0o600)).To(gomega.Succeed())
	start := func(program string, args ...string) *proc.Process {
		p, err := proc.Start(proc.Command{Program: program, Args: args, Env: os.Environ()})
		g.Expect(err).NotTo(gomega.HaveOccurred())
		t.Cleanup(func() { _ = p.Kill() })
		return p
	}
	orphan, stranger := start("tail", "-f", state), start("sleep", "3600")
	// A process that has just been started has no command line for a moment: the kernel fills it in last.
	g.Eventually(func() bool { return isOurs(orphan.Pid(), dir) }, time.Minute).Should(gomega.BeTrue())
	g.Eventually(func() bool { return isOurs(stranger.Pid(), "sleep") }, time.Minute).Should(gomega.BeTrue())
	path := deadRecord(t, note{Dir: dir, Remove: true, Pids: []int{orphan.Pid(), stranger.Pid()}})
	sweepLeftovers()

	g.Expect(orphan.Wait()).To(gomega.MatchError(gomega.ContainSubstring("killed")))
	g.Expect(stranger.Ended()).To(gomega.BeFalse())
	g.Expect(isOurs(stranger.Pid(), "sleep")).To(gomega.BeTrue(), "a process that only has the id must live")
	g.Expect(dir).NotTo(gomega.BeADirectory())
	g.Expect(path).NotTo(gomega.BeAnExistingFile())
}

func TestASweepLeavesTheLivingAndWhatItMustNotRemove(t *testing.T) {
	g := gomega.NewWithT(t)
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	folder := func(name string) string {
		path := filepath.Join(temp, name)
		g.Expect(os.Mkdir(path, 0o700)).To(gomega.Succeed())
		return path
	}
	living, named, other := folder("plimsoll-living"), folder("plimsoll-named"), folder("other")
	r, err := newRecord(living, true)
	g.Expect(err).NotTo(gomega.HaveOccurred())
	t.Cleanup(r.remove)
	deadRecord(t, note{Dir: named, Remove: false})
	deadRecord(t, note{Dir: other, Remove: true})
	sweepLeftovers()

	g.Expect(living).To(gomega.BeADirectory())
	g.Expect(r.path()).To(gomega.BeAnExistingFile())
	g.Expect(named).To(gomega.BeADirectory(), "a folder that the caller named is the caller's")
	g.Expect(other).To(gomega.BeADirectory(), "a folder that the testbed cannot have made")
	g.Expect(filepath.Glob(filepath.Join(recordsDir(), "*"))).To(gomega.HaveLen(1), "records of the dead are gone")
}
