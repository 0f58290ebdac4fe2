package main

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"testing/synctest"

	. "github.com/onsi/gomega"

	"github.com/plimsoll-dev/plimsoll/hub"
	"github.com/plimsoll-dev/plimsoll/hub/config"
	"github.com/plimsoll-dev/plimsoll/test/kube/proc"
)

func TestTheDemosFolderIsForOneAtATimeAndLeftWithNothingButTheLog(t *testing.T) {
	g := NewWithT(t)
	t.Chdir(t.TempDir())
	g.Expect(os.MkdirAll(folder, 0o700)).To(Succeed())
	g.Expect(keep(kubeconfig("stale"), nil)).To(Succeed())

	place, err := takePlace()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(kubeconfig("stale")).NotTo(BeAnExistingFile())
	_, err = takePlace()
	g.Expect(err).To(MatchError(ContainSubstring("another demo runs")))

	g.Expect(keep(hubLog, nil)).To(Succeed())
	g.Expect(keep(tokenFile, nil)).To(Succeed())
	g.Expect(place.leave()).To(Succeed())
	g.Expect(filepath.Glob(folder + "/*")).To(Equal([]string{filepath.FromSlash(hubLog)}))
	next, err := takePlace()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(next.leave()).To(Succeed())
}

func TestTheProcessesThatRunAreSeen(t *testing.T) {
	g := NewWithT(t)
	p, err := proc.Start(proc.Command{Program: "sleep", Args: []string{"3600"}, Env: os.Environ()})
	g.Expect(err).NotTo(HaveOccurred())
	defer func() { _ = p.Kill() }()
	running, ok := descendants()
	if !ok {
		t.Skip("this system has no /proc to see processes in")
	}
	g.Eventually(func() map[processID]string { running, _ = descendants(); return running }, patience).Should(ContainElement("sleep"))
	g.Expect(stillThere(running)).To(ContainElement(HavePrefix("sleep")))
	g.Expect(p.Kill()).To(Succeed())
	g.Expect(stillThere(running)).To(BeEmpty())
}

func TestALineThatFailsTellsWhatItPrinted(t *testing.T) {
	g := NewWithT(t)
	stdout, stderr, err := run(t.Context(), "echo one; echo two >&2")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect([]string{stdout, stderr}).To(Equal([]string{"one\n", "two\n"}))
	_, _, err = run(t.Context(), "echo because >&2; exit 7")
	g.Expect(err).To(MatchError(And(ContainSubstring("exit status 7"), ContainSubstring("because"))))
}

func TestProgramsDoNotSeeWhatWouldLeadThemElsewhere(t *testing.T) {
	t.Setenv("KUBECONFIG", "/elsewhere")
	t.Setenv("PLIMSOLL_SPOT_READONLY", "true")
	stdout, _, err := run(t.Context(), `echo "$KUBECONFIG$PLIMSOLL_SPOT_READONLY"`)
	g := NewWithT(t)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(stdout).To(Equal("\n"))
}

func TestWaitingEndsWithTheLastReasonAndAtOnceWhenEverythingEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		tries := 0
		err := await(t.Context(), "it", func(context.Context) error {
			tries++
			return errors.New("not yet")
		})
		g.Expect(err).To(MatchError(And(ContainSubstring("wait for it"), ContainSubstring("not yet"))))
		g.Expect(tries).To(BeNumerically(">", 2))

		err = await(t.Context(), "it", func(ctx context.Context) error {
			<-ctx.Done() // as a server that hangs
			return ctx.Err()
		})
		g.Expect(err).To(MatchError(ContainSubstring("not within")))

		tries = 0
		g.Expect(await(t.Context(), "it", func(context.Context) error {
			if tries++; tries < 3 {
				return errors.New("not yet")
			}
			return nil
		})).To(Succeed())

		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(errors.New("the hub has ended"))
		g.Expect(await(ctx, "it", func(ctx context.Context) error { return ctx.Err() })).To(MatchError(ContainSubstring("the hub has ended")))
	})
}

func TestAPortThatIsTakenIsReplacedByAnother(t *testing.T) {
	g := NewWithT(t)
	taken, err := net.Listen("tcp", loopback(0))
	g.Expect(err).NotTo(HaveOccurred())
	defer func() { _ = taken.Close() }()
	_, text, err := net.SplitHostPort(taken.Addr().String())
	g.Expect(err).NotTo(HaveOccurred())
	port, err := strconv.Atoi(text)
	g.Expect(err).NotTo(HaveOccurred())

	other, err := listen(port)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(other.Addr()).NotTo(Equal(taken.Addr()))
	g.Expect(other.Close()).To(Succeed())

	found, err := findPorts()
	g.Expect(err).NotTo(HaveOccurred())
	distinct := map[int]bool{found.GRPC: true, found.REST: true, found.Webhook: true, found.Peer: true, found.Metrics: true, found.Probes: true}
	g.Expect(distinct).To(HaveLen(6))
}

func TestTheHubAcceptsTheDemosConfiguration(t *testing.T) {
	g := NewWithT(t)
	text, err := renderHubConfig(ports{GRPC: 1, REST: 2, Webhook: 3, Peer: 4, Metrics: 5, Probes: 6})
	g.Expect(err).NotTo(HaveOccurred())
	path := filepath.Join(t.TempDir(), "hub.yaml")
	g.Expect(os.WriteFile(path, []byte(text), 0o600)).To(Succeed())
	config, err := config.Load(path, nil)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(config.API.RESTAddress).To(Equal("127.0.0.1:2"))
	g.Expect(config.Webhook.URL).To(Equal("https://127.0.0.1:3"))
	g.Expect(caSecret).To(Equal(hub.CASecret))
	g.Expect(config.API.Audience).To(Equal(audience))
}
