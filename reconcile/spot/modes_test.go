package spot

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestASwitchIsOnWhereverAnyLevelSaysSo(t *testing.T) {
	for name, c := range map[string]struct {
		workload, namespace map[string]string
		want                Source
	}{
		"nobody says anything":                       {nil, nil, SourceNone},
		"the workload":                               {annotations("read-only", "true"), nil, SourceWorkload},
		"the namespace":                              {nil, annotations("read-only", "true"), SourceNamespace},
		"both":                                       {annotations("read-only", "true"), annotations("read-only", "true"), SourceWorkload},
		"a workload does not undo its namespace":     {annotations("read-only", "false"), annotations("read-only", "true"), SourceNamespace},
		"false is off":                               {annotations("read-only", "false"), annotations("read-only", "false"), SourceNone},
		"what cannot be read was meant to be on":     {annotations("read-only", "yes"), nil, SourceWorkload},
		"of the namespace too, whatever is below it": {annotations("read-only", "false"), annotations("read-only", ""), SourceNamespace},
	} {
		if got := ParsePolicy(testKeys, c.workload, c.namespace, Defaults{}).ReadOnly; got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

func TestModesThatCannotBeReadAreNamed(t *testing.T) {
	for key, values := range map[string][]string{
		"read-only":            {"", "TRUE", "yes", "1"},
		"paused":               {"", "True", "on"},
		"strategy":             {"", "Evict", "both"},
		"spot-pending-timeout": {"", "60", "4s", "61m", "-1m", "soon"},
	} {
		for _, value := range values {
			p := ParsePolicy(testKeys, nil, annotations(key, value, "spot-percentage", "50"), Defaults{})
			if len(p.Problems) != 1 || !strings.HasSuffix(p.Problems[0].Key, "/"+key) || p.Problems[0].Rule == "" || p.Problems[0].Source != SourceNamespace {
				t.Errorf("%s=%q: problems %v", key, value, p.Problems)
			}
			if p.Strategy != "" || p.PendingTimeout != 0 || p.Mix() != (Mix{Managed: true}) {
				t.Errorf("%s=%q: policy %+v", key, value, p)
			}
		}
	}
}

func TestTheNearestLevelSaysWhatReadOnlyIsDueTo(t *testing.T) {
	configured := Settings{Cooldown: time.Second, Strategy: StrategyEvict, PendingTimeout: time.Minute}
	modes := ParsePolicy(testKeys, annotations("strategy", "release", "paused", "true"),
		annotations("strategy", "evict", "spot-pending-timeout", "90s", "read-only", "true"), Defaults{}).Modes
	want := Settings{Cooldown: time.Second, Strategy: StrategyRelease, PendingTimeout: 90 * time.Second, Paused: true, ReadOnly: true, ReadOnlyBy: "the namespace"}
	if diff := cmp.Diff(want, configured.For(modes, false)); diff != "" {
		t.Error(diff)
	}
	if got := configured.For(modes, true); got.ReadOnlyBy != "the member" {
		t.Errorf("with a read-only member it is due to the %q", got.ReadOnlyBy)
	}
	configured.ReadOnly = true
	if got := configured.For(modes, true); !got.ReadOnly || got.ReadOnlyBy != "" {
		t.Errorf("with a read-only hub it is due to the %q", got.ReadOnlyBy)
	}
	if got := (Settings{Strategy: StrategyEvict, PendingTimeout: time.Minute}); got.For(Modes{}, false) != got {
		t.Errorf("without modes: %+v", got.For(Modes{}, false))
	}
}
