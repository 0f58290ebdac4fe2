package main

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
)

// asCommand is set in the environment of a process that is the command.
const asCommand = "BENCH_AS_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) == "" {
		os.Exit(m.Run())
	}
	main()
}

// measures is a run that needs no cluster and records one figure.
func measures(name string, value float64, err error) run {
	return run{name: name, alone: true, do: func(b *bench, _ context.Context) error {
		b.report.Record(name, value)
		return err
	}}
}

// CI takes the status of the command: a goal that is missed must not look well.
func TestAMissedGoalIsTheErrorOfTheBench(t *testing.T) {
	g := NewWithT(t)
	out := filepath.Join(t.TempDir(), "bench.json")
	measure := func(chosen ...run) error { return newBench().measure(t.Context(), chosen, out, false) }
	g.Expect(measure(measures("hub-rss-mb", 80, nil))).To(Succeed())
	g.Expect(measure(measures("hub-rss-mb", 81, nil))).To(MatchError("targets missed: hub-rss-mb is 81 MB, want ≤ 80"))
	g.Expect(measure(measures("hub-rss-mb", 80, errors.New("it hangs")), measures("image-mb", 61, nil))).
		To(MatchError("run hub-rss-mb: it hangs\ntargets missed: image-mb is 61 MB, want ≤ 60"), "the others are measured all the same")
}

func TestAnErrorOfTheBenchIsItsExitStatus(t *testing.T) {
	g := NewWithT(t)
	command := exec.CommandContext(t.Context(), os.Args[0], "-run", "brust")
	command.Env = append(os.Environ(), asCommand+"=1")
	said, err := command.CombinedOutput()
	g.Expect(string(said)).To(ContainSubstring("brust"))
	g.Expect(command.ProcessState.ExitCode()).To(Equal(1), "%v", err)
}

func TestRunsAreChosenByNameAndKeepTheirOrder(t *testing.T) {
	g := NewWithT(t)
	chosen, err := choose("admission,burst")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(names(chosen)).To(Equal("burst,admission"))

	chosen, err = choose("memory")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(names(chosen)).To(Equal("burst,scale,memory"), "memory is measured after bursts")

	_, err = choose("brust")
	g.Expect(err).To(MatchError(ContainSubstring(`"brust"`)))
}
