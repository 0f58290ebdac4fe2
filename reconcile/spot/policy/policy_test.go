package policy_test

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/internal/spottest"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
)

// mostOnDemand is the largest floor that may be asked for, and what a policy that cannot be read comes to.
const mostOnDemand = 10000

func TestOnlyTheExactLabelOnBothEnables(t *testing.T) {
	on := map[string]string{spottest.DefaultKeys.Enabled(): "true"}
	for _, c := range []struct {
		workload, namespace map[string]string
		want                bool
	}{
		{on, on, true}, {on, nil, false}, {nil, on, false},
		{map[string]string{spottest.DefaultKeys.Enabled(): "TRUE"}, on, false},
		{on, map[string]string{spottest.DefaultKeys.Enabled(): "1"}, false},
		{map[string]string{"spotalis.io/enabled": "true"}, on, false},
	} {
		if got := policy.Enabled(spottest.DefaultKeys, c.workload, c.namespace); got != c.want {
			t.Errorf("Enabled(%v, %v) = %v", c.workload, c.namespace, got)
		}
	}
}

func TestEachValueComesFromTheNearestLevelThatHasIt(t *testing.T) {
	p := policy.Parse(spottest.DefaultKeys, spottest.Annotations("spot-percentage", "70%"), spottest.Annotations("spot-percentage", "10", "min-on-demand", "2"),
		policy.Defaults{Percentage: ptr.To(5), MinOnDemand: ptr.To(9), Schedule: "0 2 * * *", Duration: "4h"})
	if !p.Valid() || !p.Managed() {
		t.Fatalf("problems: %v", p.Problems)
	}
	if diff := cmp.Diff(policy.Mix{Percent: 70, Floor: 2, Managed: true}, p.Mix()); diff != "" {
		t.Error(diff)
	}
	got := []policy.Source{p.PercentageSource, p.MinOnDemandSource, p.WindowSource}
	if diff := cmp.Diff([]policy.Source{policy.SourceWorkload, policy.SourceNamespace, policy.SourceDefault}, got); diff != "" {
		t.Error(diff)
	}
}

func TestAnOverriddenValueIsNotLookedAt(t *testing.T) {
	p := policy.Parse(spottest.DefaultKeys, spottest.Annotations("spot-percentage", "70"), spottest.Annotations("spot-percentage", "lots"), policy.Defaults{})
	if !p.Valid() {
		t.Errorf("problems: %v", p.Problems)
	}
}

func TestAFloorAloneKeepsEverythingOnDemand(t *testing.T) {
	p := policy.Parse(spottest.DefaultKeys, spottest.Annotations("min-on-demand", "2"), nil, policy.Defaults{})
	if got := p.Mix(); got != (policy.Mix{Floor: 2, Managed: true}) {
		t.Errorf("mix %+v", got)
	}
	p = policy.Parse(spottest.DefaultKeys, spottest.Annotations("spot-percentage", "100"), nil, policy.Defaults{})
	if got := p.Mix(); got != (policy.Mix{Percent: 100, Managed: true}) {
		t.Errorf("mix %+v", got)
	}
}

func TestNoValueAnywhereIsUnmanaged(t *testing.T) {
	p := policy.Parse(spottest.DefaultKeys, spottest.Annotations("other", "1"), nil, policy.Defaults{})
	if p.Managed() || !p.Valid() || p.Mix() != (policy.Mix{}) {
		t.Errorf("policy %+v", p)
	}
}

func TestABadValueIsNamedAndPutsEverythingOnDemand(t *testing.T) {
	for key, values := range map[string][]string{
		"spot-percentage": {"", "-1", "101", "70.5", "seventy", "70%%", " 70", "7e1", "+7", "%", "99999999999999999999", "７０"},
		"min-on-demand":   {"", "-1", "10001", "1.5", "5%", "0x1", "1 "},
	} {
		for _, value := range values {
			p := policy.Parse(spottest.DefaultKeys, spottest.Annotations(key, value), spottest.Annotations("spot-percentage", "50", "min-on-demand", "1"), policy.Defaults{})
			if len(p.Problems) != 1 || !p.Managed() || p.Mix() != (policy.Mix{Managed: true, Floor: mostOnDemand}) {
				t.Errorf("%s=%q: problems %v, mix %+v", key, value, p.Problems, p.Mix())
				continue
			}
			got := p.Problems[0]
			if got.Key != spottest.DefaultKeys.Prefix+"/"+key || got.Value != value || got.Rule == "" || got.Source != policy.SourceWorkload {
				t.Errorf("%s=%q: problem %+v", key, value, got)
			}
		}
	}
}

func TestAWindowNeedsBothOfItsValues(t *testing.T) {
	for _, c := range []struct {
		workload, namespace map[string]string
		problem             string // suffix of the key, "" for none
	}{
		{spottest.Annotations("disruption-schedule", "0 2 * * *"), nil, "/disruption-duration"},
		{spottest.Annotations("disruption-duration", "4h"), nil, "/disruption-schedule"},
		{spottest.Annotations("disruption-schedule", "0 2 * * *", "disruption-duration", "4h"), nil, ""},
		{spottest.Annotations("disruption-schedule", "0 2 * * *"), spottest.Annotations("disruption-duration", "4h"), "/disruption-duration"},
		{nil, spottest.Annotations("disruption-schedule", "0 2 * * *", "disruption-duration", "4h", "disruption-timezone", "Asia/Tokyo"), ""},
		{spottest.Annotations("disruption-timezone", "Asia/Tokyo"), spottest.Annotations("disruption-schedule", "0 2 * * *", "disruption-duration", "4h"), "/disruption-schedule"},
		{spottest.Annotations("disruption-schedule", "0 2 * * *", "disruption-duration", "4h", "disruption-timezone", ""), nil, "/disruption-timezone"},
		{spottest.Annotations("disruption-schedule", "0 2 * * *", "disruption-duration", "4h", "disruption-timezone", "Mars/Olympus"), nil, "/disruption-timezone"},
		{spottest.Annotations("disruption-schedule", "", "disruption-duration", "4h"), nil, "/disruption-schedule"},
		{spottest.Annotations("disruption-schedule", "0 2 * * *", "disruption-duration", "0s"), nil, "/disruption-duration"},
		{spottest.Annotations("disruption-schedule", "@daily", "disruption-duration", "1h"), nil, "/disruption-schedule"},
	} {
		p := policy.Parse(spottest.DefaultKeys, c.workload, c.namespace, policy.Defaults{})
		if c.problem == "" {
			if !p.Valid() || p.Window == nil {
				t.Errorf("%v: problems %v", c.workload, p.Problems)
			}
			continue
		}
		if len(p.Problems) == 0 || !strings.HasSuffix(p.Problems[0].Key, c.problem) || p.Window != nil || !p.WindowInvalid {
			t.Errorf("%v: problems %v, want one of %s", c.workload, p.Problems, c.problem)
		}
		if !p.Valid() {
			t.Errorf("%v: a window says when replicas move, and not where they belong: %v", c.workload, p.Problems)
		}
	}
}

func TestAWindowIsTakenWholeFromTheNearestLevel(t *testing.T) {
	p := policy.Parse(spottest.DefaultKeys, spottest.Annotations("disruption-schedule", "0 2 * * *", "disruption-duration", "1h"),
		spottest.Annotations("disruption-schedule", "0 3 * * *", "disruption-duration", "2h", "disruption-timezone", "Asia/Tokyo"),
		policy.Defaults{Schedule: "0 4 * * *", Duration: "3h", Timezone: "Europe/Berlin"})
	if got := p.Window; got == nil || got.Schedule != "0 2 * * *" || got.Duration != time.Hour || got.Zone != "UTC" || p.WindowSource != policy.SourceWorkload {
		t.Errorf("window %v of the %s, problems %v", got, p.WindowSource, p.Problems)
	}
	p = policy.Parse(spottest.DefaultKeys, spottest.Annotations("spot-percentage", "70"), nil, policy.Defaults{Schedule: "0 4 * * *", Duration: "3h", Timezone: "Europe/Berlin"})
	if got := p.Window; got == nil || got.Zone != "Europe/Berlin" || p.WindowSource != policy.SourceDefault {
		t.Errorf("window %v of the %s, problems %v", got, p.WindowSource, p.Problems)
	}
}

func TestDefaultsThatNoPolicyCouldUseAreRefused(t *testing.T) {
	if err := (policy.Defaults{Percentage: ptr.To(70)}).Validate(); err != nil {
		t.Error(err)
	}
	for want, d := range map[string]policy.Defaults{
		"spot.defaults.spotPercentage":     {Percentage: ptr.To(101)},
		"spot.defaults.minOnDemand":        {MinOnDemand: ptr.To(-1)},
		"spot.defaults.disruptionSchedule": {Schedule: "never", Duration: "1h"},
		"spot.defaults.disruptionDuration": {Schedule: "0 2 * * *", Timezone: "UTC"},
		"spot.defaults.disruptionTimezone": {Schedule: "0 2 * * *", Duration: "1h", Timezone: "Local"},
	} {
		if err := d.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v", d, err)
		}
	}
}

func TestALongValueIsShortenedWithinItsLimit(t *testing.T) {
	p := policy.Parse(spottest.DefaultKeys, spottest.Annotations("min-on-demand", strings.Repeat("é", 5000)), nil, policy.Defaults{})
	if got := p.Problems[0].Value; len(got) > 80 || !utf8.ValidString(got) {
		t.Errorf("%q", got)
	}
}

func TestAPrefixMustBeADomain(t *testing.T) {
	if k, err := policy.NewKeys(""); err != nil || k.Slot() != "plimsoll.dev/slot" {
		t.Errorf("%v, %v", k, err)
	}
	if k, err := policy.NewKeys("spotalis.io"); err != nil || k.Enabled() != "spotalis.io/enabled" {
		t.Errorf("%v, %v", k, err)
	}
	for _, bad := range []string{"a/b", "UPPER", "a b", strings.Repeat("a", 300)} {
		if _, err := policy.NewKeys(bad); err == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
}

func FuzzParsePolicyNeverPanicsAndAlwaysJudges(f *testing.F) {
	f.Add("70%", "1", "0 2 * * *", "4h", "UTC")
	f.Add("", "-0", "TZ=", "1ns", "")
	f.Add("100", "10000", "CRON_TZ=Mars 0 0 30 2 *", "-1h", "Local")
	f.Add("0", "0", ", , , , ,", "2562047h47m16.854775807s", "Europe/Berlin")
	f.Add("٣", "9999999999", "*/9223372036854775807 * * * *", "1e9h", "\x00")
	f.Fuzz(func(t *testing.T, percentage, floor, schedule, duration, zone string) {
		p := policy.Parse(spottest.DefaultKeys, spottest.Annotations("spot-percentage", percentage, "min-on-demand", floor,
			"disruption-schedule", schedule, "disruption-duration", duration, "disruption-timezone", zone), nil, policy.Defaults{})
		m := p.Mix()
		if !m.Managed || m.Percent < 0 || m.Percent > 100 || m.Floor < 0 || m.Floor > mostOnDemand {
			t.Fatalf("mix %+v", m)
		}
		if p.Valid() != (p.Percentage != nil && p.MinOnDemand != nil) || p.WindowInvalid != (p.Window == nil) {
			t.Fatalf("problems %v of policy %+v", p.Problems, p)
		}
		if !p.Valid() && m != (policy.Mix{Managed: true, Floor: mostOnDemand}) {
			t.Fatalf("an invalid policy has mix %+v", m)
		}
		if p.Window != nil {
			p.Window.Contains(spottest.Epoch)
			p.Window.Next(spottest.Epoch)
		}
	})
}
