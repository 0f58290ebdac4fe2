package fleet

import (
	"math"
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/plimsoll-dev/plimsoll/hub/config"
)

func TestTheFormulaGivesTheFloorBeforeTheShare(t *testing.T) {
	for _, c := range []struct{ replicas, percent, floor, spot int }{
		{100, 70, 1, 70}, {100, 100, 20, 80}, {5, 70, 1, 3}, {3, 70, 5, 0}, {0, 70, 1, 0}, {10, 0, 0, 0}, {1, 99, 0, 0},
	} {
		spot, onDemand := Want(c.replicas, c.percent, c.floor)
		NewWithT(t).Expect([]int{spot, onDemand}).To(Equal([]int{c.spot, c.replicas - c.spot}), "%+v", c)
	}
}

func TestSettingsBecomeAConfigurationThatTheHubTakes(t *testing.T) {
	g := NewWithT(t)
	path := filepath.Join(t.TempDir(), "hub.yaml")
	g.Expect(writeConfig(path, Settings{"spot.moveCooldown": "1s", "spot.defaults.minOnDemand": 3, "webhook.ips": []string{"127.0.0.1"}})).To(Succeed())
	config, err := config.Load(path, nil)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(config.Spot.MoveCooldown.String()).To(Equal("1s"))
	g.Expect(config.Spot.Defaults.MinOnDemand).To(HaveValue(Equal(3)))
	info, err := os.Stat(path)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(info.Mode().Perm()).To(BeEquivalentTo(0o600))
}

func TestSamplesAreReadFromTheTextFormat(t *testing.T) {
	g := NewWithT(t)
	_, _, ok := parseSample("# HELP x y")
	g.Expect(ok).To(BeFalse())
	name, sample, ok := parseSample(`plimsoll_x_total{member="a b",outcome="done"} 3`)
	g.Expect(ok).To(BeTrue())
	g.Expect(name).To(Equal("plimsoll_x_total"))
	g.Expect(sample.Value).To(Equal(3.0))
	g.Expect(sample.Has("outcome", "done")).To(BeTrue())
	g.Expect(sample.Has("come", "done")).To(BeFalse())
	name, sample, ok = parseSample("plimsoll_owner 1")
	g.Expect([]any{name, sample.Value, ok}).To(Equal([]any{"plimsoll_owner", 1.0, true}))
}

func TestQuantilesAreTheBoundsOfTheirBuckets(t *testing.T) {
	g := NewWithT(t)
	buckets := []Sample{
		{Labels: `member="a",le="0.1"`, Value: 90}, {Labels: `member="a",le="1"`, Value: 99}, {Labels: `member="a",le="+Inf"`, Value: 99},
		{Labels: `member="b",le="0.1"`, Value: 0}, {Labels: `member="b",le="1"`, Value: 0}, {Labels: `member="b",le="+Inf"`, Value: 1},
	}
	all := func(Sample) bool { return true }
	g.Expect(Quantile(buckets, 0.5, all)).To(Equal(0.1))
	g.Expect(Quantile(buckets, 0.99, all)).To(Equal(1.0))
	g.Expect(Quantile(buckets, 1, all)).To(Equal(math.Inf(1)))
	g.Expect(Quantile(nil, 0.5, all)).To(Equal(math.Inf(1)))
}
