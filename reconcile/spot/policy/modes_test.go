package policy

import (
	"strings"
	"testing"
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
		if got := Parse(testKeys, c.workload, c.namespace, Defaults{}).ReadOnly; got != c.want {
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
			p := Parse(testKeys, nil, annotations(key, value, "spot-percentage", "50"), Defaults{})
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
