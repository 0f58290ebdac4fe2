package policy_test

import (
	"strings"
	"testing"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/internal/spottest"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
)

func TestASwitchIsOnWhereverAnyLevelSaysSo(t *testing.T) {
	for name, c := range map[string]struct {
		workload, namespace map[string]string
		want                policy.Source
	}{
		"nobody says anything":                       {nil, nil, policy.SourceNone},
		"the workload":                               {spottest.Annotations("read-only", "true"), nil, policy.SourceWorkload},
		"the namespace":                              {nil, spottest.Annotations("read-only", "true"), policy.SourceNamespace},
		"both":                                       {spottest.Annotations("read-only", "true"), spottest.Annotations("read-only", "true"), policy.SourceWorkload},
		"a workload does not undo its namespace":     {spottest.Annotations("read-only", "false"), spottest.Annotations("read-only", "true"), policy.SourceNamespace},
		"false is off":                               {spottest.Annotations("read-only", "false"), spottest.Annotations("read-only", "false"), policy.SourceNone},
		"what cannot be read was meant to be on":     {spottest.Annotations("read-only", "yes"), nil, policy.SourceWorkload},
		"of the namespace too, whatever is below it": {spottest.Annotations("read-only", "false"), spottest.Annotations("read-only", ""), policy.SourceNamespace},
	} {
		if got := policy.Parse(spottest.DefaultKeys, c.workload, c.namespace, policy.Defaults{}).ReadOnly; got != c.want {
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
			p := policy.Parse(spottest.DefaultKeys, nil, spottest.Annotations(key, value, "spot-percentage", "50"), policy.Defaults{})
			if len(p.Problems) != 1 || !strings.HasSuffix(p.Problems[0].Key, "/"+key) || p.Problems[0].Rule == "" || p.Problems[0].Source != policy.SourceNamespace {
				t.Errorf("%s=%q: problems %v", key, value, p.Problems)
			}
			if p.Strategy != "" || p.PendingTimeout != 0 || p.MaxMovesSource != policy.SourceNone || p.CooldownSource != policy.SourceNone {
				t.Errorf("%s=%q: modes %+v", key, value, p.Modes)
			}
			if !p.Valid() || p.Mix() != (policy.Mix{Percent: 50, Managed: true}) {
				t.Errorf("%s=%q changes where replicas go: %+v", key, value, p.Mix())
			}
		}
	}
}
