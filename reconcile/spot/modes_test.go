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
		"max-moves":            {"", "0", "-1", "101%", "some"},
		"cool-down":            {"", "10", "-1s", "61m", "soon"},
	} {
		for _, value := range values {
			p := ParsePolicy(testKeys, nil, annotations(key, value, "spot-percentage", "50"), Defaults{})
			if len(p.Problems) != 1 || !strings.HasSuffix(p.Problems[0].Key, "/"+key) || p.Problems[0].Rule == "" || p.Problems[0].Source != SourceNamespace {
				t.Errorf("%s=%q: problems %v", key, value, p.Problems)
			}
			if p.Strategy != "" || p.PendingTimeout != 0 || p.MaxMovesSource != SourceNone || p.CooldownSource != SourceNone {
				t.Errorf("%s=%q: modes %+v", key, value, p.Modes)
			}
			if !p.Valid() || p.Mix() != (Mix{Percent: 50, Managed: true}) {
				t.Errorf("%s=%q changes where replicas go: %+v", key, value, p.Mix())
			}
		}
	}
}

func TestAValueOfTheModesThatCannotBeReadGivesWayToTheNextLevel(t *testing.T) {
	p := ParsePolicy(testKeys, annotations("strategy", "both", "max-moves", "none", "cool-down", "2h", "spot-pending-timeout", "1s"),
		annotations("strategy", "release", "max-moves", "25%", "cool-down", "0s"), Defaults{})
	configured := Settings{MaxMoves: MoveLimit{Count: 3}, Cooldown: time.Second, PendingTimeout: time.Minute}
	want := Settings{MaxMoves: MoveLimit{Percent: 25}, Cooldown: 0, PendingTimeout: time.Minute, Strategy: StrategyRelease}
	if diff := cmp.Diff(want, configured.For(p.Modes, false)); diff != "" || len(p.Problems) != 4 {
		t.Errorf("%s, problems %v", diff, p.Problems)
	}
	for _, found := range p.Problems {
		if found.Source != SourceWorkload || found.Severity != SeverityMinor {
			t.Errorf("%+v", found)
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
