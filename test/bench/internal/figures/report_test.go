package figures

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
)

func TestTheTableMarksWhatMissesItsTargetAndLeavesOutWhatWasNotMeasured(t *testing.T) {
	g := NewWithT(t)
	r := New()
	r.Record("burst-evictions", 1)
	r.Record("hub-rss-mb", 79.9)
	r.Record("admission-rps", 9999)
	r.Record("admission-p99-ms", 40)
	r.Record("admission-p99-ratio", 1.26)
	r.Note("measured on a quiet machine")
	var out bytes.Buffer
	g.Expect(r.Print(&out)).To(Succeed())
	g.Expect(out.String()).To(MatchRegexp(`burst-evictions\s+1\s+evictions\s+0\s+MISSED`))
	g.Expect(out.String()).To(MatchRegexp(`hub-rss-mb\s+79\.9\s+MB\s+≤ 80\s+ok`))
	g.Expect(out.String()).To(MatchRegexp(`admission-rps\s+9999\s+1/s\s+≥ 10000\s+MISSED`))
	g.Expect(out.String()).To(MatchRegexp(`admission-p99-ms\s+40\s+ms\s+-\s+\n`))
	g.Expect(out.String()).To(MatchRegexp(`admission-p99-ratio\s+1.26\s+times\s+≤ 1.25\s+MISSED`))
	g.Expect(out.String()).To(ContainSubstring("measured on a quiet machine"))
	g.Expect(out.String()).NotTo(ContainSubstring("failover-s"))
}

func TestMissedTargetsAreAnErrorThatNamesThem(t *testing.T) {
	g := NewWithT(t)
	r := New()
	r.Record("hub-rss-mb", 80)
	r.Record("admission-p99-ms", 40) // has no target
	g.Expect(r.Missed()).To(Succeed())
	r.Record("burst-evictions", 1)
	r.Record("hub-rss-mb", 81.26)
	r.Record("admission-rps", 9999)
	g.Expect(r.Missed()).To(MatchError(
		"targets missed: burst-evictions is 1 evictions, want 0; hub-rss-mb is 81.3 MB, want ≤ 80; admission-rps is 9999 1/s, want ≥ 10000"))
}

func TestTheFileHoldsNameValueAndUnitOfEachFigure(t *testing.T) {
	g := NewWithT(t)
	r := New()
	r.Record("failover-s", 5.25)
	r.Record("burst-mix-error", 0)
	path := filepath.Join(t.TempDir(), "build", "bench.json")
	g.Expect(r.Write(path)).To(Succeed())
	content, err := os.ReadFile(path)
	g.Expect(err).NotTo(HaveOccurred())
	var rows []map[string]any
	g.Expect(json.Unmarshal(content, &rows)).To(Succeed())
	g.Expect(rows).To(Equal([]map[string]any{
		{"name": "burst-mix-error", "value": 0.0, "unit": "pods"},
		{"name": "failover-s", "value": 5.25, "unit": "s"},
	}))
}

func TestTheFileKeepsTheFiguresOfOthers(t *testing.T) {
	g := NewWithT(t)
	path := filepath.Join(t.TempDir(), "bench.json")
	before := `[{"name": "robustness-faults", "value": 60, "unit": "faults"}, {"name": "failover-s", "value": 9, "unit": "s"}]`
	g.Expect(os.WriteFile(path, []byte(before), 0o600)).To(Succeed())
	r := New()
	r.Record("burst-mix-error", 0)
	g.Expect(r.Write(path)).To(Succeed())
	content, err := os.ReadFile(path)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(content).To(MatchJSON(`[{"name": "burst-mix-error", "value": 0, "unit": "pods"}, {"name": "robustness-faults", "value": 60, "unit": "faults"}]`))
}
