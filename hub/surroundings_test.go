package hub

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"testing"
	"testing/fstest"

	. "github.com/onsi/gomega"

	"github.com/plimsoll-dev/plimsoll/hub/config"
)

func TestTheLogHasTheFormatAndTheLevelThatTheConfigurationAsksFor(t *testing.T) {
	said := func(format string) string {
		var out bytes.Buffer
		log := Logger(config.LogConfig{Format: format, Level: slog.LevelWarn}, &out)
		log.Info("too little")
		log.Warn("enough", "member", "eu")
		return out.String()
	}
	g := NewWithT(t)
	g.Expect(said(config.FormatText)).To(MatchRegexp(`^time=\S+ level=WARN msg=enough member=eu\n$`))
	var line map[string]any
	g.Expect(json.Unmarshal([]byte(said(config.FormatJSON)), &line)).To(Succeed(), "one object")
	g.Expect(line).To(And(HaveKeyWithValue("level", "WARN"), HaveKeyWithValue("msg", "enough"), HaveKeyWithValue("member", "eu")))
}

func TestTheMemoryLimitIsTheContainersLessATenth(t *testing.T) {
	const v2, v1 = "sys/fs/cgroup/memory.max", "sys/fs/cgroup/memory/memory.limit_in_bytes"
	for _, c := range []struct {
		name, text string
		want       int64
	}{
		{v2, "536870912\n", 483183819}, {v2, "max\n", 0}, {v1, "1000\n", 900}, {v1, "9223372036854771712\n", 0}, {v2, "", 0}, {"other", "5", 0},
	} {
		g := NewWithT(t)
		limit, ok := memoryLimit(fstest.MapFS{c.name: {Data: []byte(c.text)}})
		g.Expect(ok).To(Equal(c.want > 0), "%+v", c)
		g.Expect(limit).To(Equal(c.want), "%+v", c)
	}
}

func TestTheGarbageCollectorKnowsTheContainersLimit(t *testing.T) {
	limit, percent, procs := debug.SetMemoryLimit(-1), debug.SetGCPercent(100), runtime.GOMAXPROCS(0)
	t.Cleanup(func() {
		debug.SetMemoryLimit(limit)
		debug.SetGCPercent(percent)
		runtime.GOMAXPROCS(procs)
	})
	g := NewWithT(t)
	container := fstest.MapFS{"sys/fs/cgroup/memory.max": {Data: []byte("536870912\n")}}
	tuneProcess(container, []string{"GOMEMLIMIT=1GiB"}, slog.New(slog.DiscardHandler))
	g.Expect(debug.SetMemoryLimit(-1)).To(Equal(limit), "the environment's counts")
	tuneProcess(container, nil, slog.New(slog.DiscardHandler))
	g.Expect(debug.SetMemoryLimit(-1)).To(BeEquivalentTo(483183819))
	g.Expect(fleetCacheBytes(0)).To(BeEquivalentTo(338228667), "seven tenths")
	g.Expect(fleetCacheBytes(3)).To(BeEquivalentTo(3<<20), "what is configured counts")
	debug.SetMemoryLimit(math.MaxInt64)
	g.Expect(fleetCacheBytes(0)).To(BeZero(), "nothing limits them")
}

// What is tuned is a process, so this is done by another one. Its hub cannot start: tuning comes before that.
func TestTheProcessIsTunedBeforeAnythingIsMade(t *testing.T) {
	g := NewWithT(t)
	const asOther = "CONFIG_OF_TUNED_HUB"
	if file := os.Getenv(asOther); file != "" { // and not PLIMSOLL_…, which is for keys of the configuration
		g.Expect(runProcess(file, nil)).To(MatchError(ContainSubstring("hub cluster: ")))
		g.Expect(debug.SetGCPercent(gcPercent)).To(Equal(gcPercent))
		return
	}
	file := filepath.Join(t.TempDir(), "hub.yaml")
	const here = "127.0.0.1:0}"
	g.Expect(os.WriteFile(file, []byte("api: {grpcAddress: 127.0.0.1:0, restAddress: "+here+"\npeer: {address: "+here+
		"\nmetrics: {address: "+here+"\nprobes: {address: "+here+"\n"), 0o600)).To(Succeed())
	other := exec.CommandContext(t.Context(), os.Args[0], "-test.v", "-test.run=^"+t.Name()+"$")
	other.Env = []string{asOther + "=" + file} // without GOGC, and without a hub cluster
	said, err := other.CombinedOutput()
	g.Expect(err).NotTo(HaveOccurred(), "%s", said)
	g.Expect(string(said)).To(ContainSubstring("--- PASS: " + t.Name()))
}
