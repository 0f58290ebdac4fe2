package deploy

import (
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/promql/promqltest"
	"github.com/prometheus/prometheus/rules"
	"sigs.k8s.io/yaml"
)

func alertRules(t *testing.T) []rulefmt.Rule {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(root, "deploy", "chart", "plimsoll", "files", "alerts.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	groups, problems := rulefmt.Parse(content, false, model.UTF8Validation, parser.NewParser(parser.Options{}), slog.Default())
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	var all []rulefmt.Rule
	for _, group := range groups.Groups {
		all = append(all, group.Rules...)
	}
	return all
}

// healthy are the series of a hub with two replicas and nothing to complain about, one sample a minute.
const healthy = `
load 1m
  plimsoll_owner{job="plimsoll-metrics",namespace="plimsoll-system",instance="a"} 1x400
  plimsoll_owner{job="plimsoll-metrics",namespace="plimsoll-system",instance="b"} 0x400
  plimsoll_member_state{job="plimsoll-metrics",instance="a",member="prod-eu",state="Ready"} 1x400
  plimsoll_member_state{job="plimsoll-metrics",instance="a",member="prod-eu",state="Unreachable"} 0x400
  plimsoll_reconcile_total{job="plimsoll-metrics",instance="a",member="prod-eu",controller="deployment",outcome="done"} 0+60x400
  plimsoll_reconcile_errors_total{job="plimsoll-metrics",instance="a",member="prod-eu",controller="deployment"} 0+1x400
  plimsoll_reconcile_stuck{job="plimsoll-metrics",instance="a",member="prod-eu",controller="deployment"} 0x400
  plimsoll_finalizers_overdue{job="plimsoll-metrics",instance="a",member="prod-eu",controller="webapp"} 0x400
  plimsoll_spot_dry{job="plimsoll-metrics",instance="a",member="prod-eu",capacity="spot"} 0x400
  plimsoll_spot_dry{job="plimsoll-metrics",instance="a",member="prod-eu",capacity="on-demand"} 0x400
  plimsoll_workload_floor_missing{job="plimsoll-metrics",instance="a",member="prod-eu",namespace="shop",kind="Deployment",name="web"} 0x400
  plimsoll_workload_misplaced{job="plimsoll-metrics",instance="a",member="prod-eu",namespace="shop",kind="Deployment",name="web"} 0x400
  plimsoll_finalizers_overdue{job="plimsoll-metrics",instance="b",member="prod-eu",controller="webapp"} 1x400
  plimsoll_spot_dry{job="plimsoll-metrics",instance="b",member="prod-eu",capacity="spot"} 1x400
  plimsoll_spot_dry{job="plimsoll-metrics",instance="b",member="prod-eu",capacity="on-demand"} 1x400
  plimsoll_workload_floor_missing{job="plimsoll-metrics",instance="b",member="prod-eu",namespace="shop",kind="Deployment",name="web"} 3x400
  plimsoll_workload_misplaced{job="plimsoll-metrics",instance="b",member="prod-eu",namespace="shop",kind="Deployment",name="web"} 3x400
  plimsoll_admissions_total{job="plimsoll-metrics",instance="a",member="prod-eu",outcome="spot"} 0+60x400
  plimsoll_webhook_reached{job="plimsoll-metrics",instance="a",member="prod-eu"} 1x400
  plimsoll_pods_undecided_total{job="plimsoll-metrics",instance="a",member="prod-eu"} 3x400
  plimsoll_fleet_placements{job="plimsoll-metrics",instance="a",reason="Placed"} 3x400
  plimsoll_fleet_placements{job="plimsoll-metrics",instance="a",reason="Moving"} 1x400
  plimsoll_fleet_members{job="plimsoll-metrics",instance="a",member="prod-eu",state="Placed"} 4x400
  plimsoll_certificate_expiry_timestamp_seconds{job="plimsoll-metrics",instance="a",certificate="webhook"} 2592000x400
  plimsoll_member_token_expiry_seconds{job="plimsoll-metrics",instance="a",member="prod-eu"} 86400x400
  plimsoll_member_token_life_seconds{job="plimsoll-metrics",instance="a",member="prod-eu"} 86400x400
`

// trouble is one series that differs from the healthy ones, and the alerts that follow.
var trouble = map[string]struct {
	series string // in place of the healthy series of the same labels, or beside them
	quiet  time.Duration
	fires  time.Duration
	alert  string
	says   string // in its summary
}{
	"nobody owns": {
		`plimsoll_owner{job="plimsoll-metrics",namespace="plimsoll-system",instance="a"} 1x9 0x80`,
		11 * time.Minute, 13 * time.Minute, "PlimsollNoOwner", "No replica",
	},
	"two own": {
		`plimsoll_owner{job="plimsoll-metrics",namespace="plimsoll-system",instance="b"} 0x9 1x80`,
		11 * time.Minute, 13 * time.Minute, "PlimsollTwoOwners", "More than one",
	},
	"a member does not answer": {
		`plimsoll_member_state{job="plimsoll-metrics",instance="a",member="prod-eu",state="Unreachable"} 0x9 1x80`,
		14 * time.Minute, 16 * time.Minute, "PlimsollMemberLost", "prod-eu is Unreachable",
	},
	"a member lacks a permission": {
		`plimsoll_member_state{job="plimsoll-metrics",instance="a",member="prod-eu",state="Degraded"} 0x9 1x80`,
		24 * time.Minute, 26 * time.Minute, "PlimsollMemberDegraded", "prod-eu is Degraded",
	},
	"the first registration ever is refused": {
		`plimsoll_member_refused_total{job="plimsoll-metrics",instance="a",reason="BadKubeconfig"} _x9 1x80`,
		8 * time.Minute, 11 * time.Minute, "PlimsollRegistrationRefused", "BadKubeconfig",
	},
	"another registration is refused": {
		`plimsoll_member_refused_total{job="plimsoll-metrics",instance="a",reason="BadKubeconfig"} 3x29 4x60`,
		29 * time.Minute, 31 * time.Minute, "PlimsollRegistrationRefused", "BadKubeconfig",
	},
	"every second reconcile fails": {
		`plimsoll_reconcile_errors_total{job="plimsoll-metrics",instance="a",member="prod-eu",controller="deployment"} 0+1x9 10+30x80`,
		20 * time.Minute, 40 * time.Minute, "PlimsollReconcileErrors", "Reconciles of deployment fail in prod-eu",
	},
	"a panic": {
		`plimsoll_reconcile_panics_total{job="plimsoll-metrics",instance="a",member="prod-eu",controller="deployment"} _x9 1x80`,
		8 * time.Minute, 11 * time.Minute, "PlimsollReconcilePanics", "deployment panicked in prod-eu",
	},
	"a reconcile does not return": {
		`plimsoll_reconcile_stuck{job="plimsoll-metrics",instance="a",member="prod-eu",controller="deployment"} 0x9 2x80`,
		14 * time.Minute, 16 * time.Minute, "PlimsollReconcileStuck", "deployment are stuck in prod-eu",
	},
	"an object cannot be cleaned up": {
		`plimsoll_finalizers_overdue{job="plimsoll-metrics",instance="a",member="prod-eu",controller="webapp"} 0x9 1x80`,
		19 * time.Minute, 21 * time.Minute, "PlimsollCleanupOverdue", "webapp cannot be cleaned up in prod-eu",
	},
	"replicas stay in the wrong place": {
		`plimsoll_workload_misplaced{job="plimsoll-metrics",instance="a",member="prod-eu",namespace="shop",kind="Deployment",name="web"} 0x9 2x400`,
		369 * time.Minute, 371 * time.Minute, "PlimsollReplicasMisplaced", "Deployment shop/web of prod-eu stay",
	},
	"the floor is broken": {
		`plimsoll_workload_floor_missing{job="plimsoll-metrics",instance="a",member="prod-eu",namespace="shop",kind="Deployment",name="web"} 0x9 1x80`,
		24 * time.Minute, 26 * time.Minute, "PlimsollFloorBroken", "Deployment shop/web of prod-eu",
	},
	"spot has no room": {
		`plimsoll_spot_dry{job="plimsoll-metrics",instance="a",member="prod-eu",capacity="spot"} 0x9 2x80`,
		39 * time.Minute, 41 * time.Minute, "PlimsollSpotDry", "No spot capacity in prod-eu",
	},
	"on-demand has no room": {
		`plimsoll_spot_dry{job="plimsoll-metrics",instance="a",member="prod-eu",capacity="on-demand"} 0x9 2x80`,
		24 * time.Minute, 26 * time.Minute, "PlimsollOnDemandDry", "No on-demand capacity in prod-eu",
	},
	"pods are let through": {
		`plimsoll_admissions_total{job="plimsoll-metrics",instance="a",member="prod-eu",outcome="timeout"} 0x9 0+5x80`,
		24 * time.Minute, 35 * time.Minute, "PlimsollPodsNotPlaced", "prod-eu are created without a decision: timeout",
	},
	"a member's API server does not reach the webhook": {
		`plimsoll_webhook_reached{job="plimsoll-metrics",instance="a",member="prod-eu"} 1x9 0x80`,
		19 * time.Minute, 21 * time.Minute, "PlimsollWebhookUnreached", "prod-eu does not reach the webhook",
	},
	"pods slip past the webhook": {
		`plimsoll_pods_undecided_total{job="plimsoll-metrics",instance="a",member="prod-eu"} 3x9 3+2x80`,
		20 * time.Minute, 45 * time.Minute, "PlimsollPodsUndecided", "prod-eu are created without a decision of the webhook",
	},
	"a fleet placement has no target": {
		`plimsoll_fleet_placements{job="plimsoll-metrics",instance="a",reason="TargetNotFound"} _x9 1x80`,
		23 * time.Minute, 26 * time.Minute, "PlimsollFleetPlacementStopped", "not carried out: TargetNotFound",
	},
	"replicas of a fleet placement have no place": {
		`plimsoll_fleet_placements{job="plimsoll-metrics",instance="a",reason="Incomplete"} _x9 2x80`,
		23 * time.Minute, 26 * time.Minute, "PlimsollFleetReplicasMissing", "fewer replicas than are wanted",
	},
	"a member of fleet placements is lost": {
		`plimsoll_fleet_members{job="plimsoll-metrics",instance="a",member="prod-eu",state="Lost"} _x9 3x80`,
		13 * time.Minute, 16 * time.Minute, "PlimsollFleetMemberLost", "prod-eu is lost to FleetPlacements",
	},
	"a token was not renewed": {
		`plimsoll_member_token_expiry_seconds{job="plimsoll-metrics",instance="a",member="prod-eu"} 18000x9 14400x80`,
		14 * time.Minute, 16 * time.Minute, "PlimsollMemberTokenExpires", "prod-eu expires in 4h",
	},
	"a certificate ends in six days": {
		`plimsoll_certificate_expiry_timestamp_seconds{job="plimsoll-metrics",instance="a",certificate="webhook"} 518400x90`,
		9 * time.Minute, 11 * time.Minute, "PlimsollCertificateExpires", "webhook certificate expires in 5d 23h",
	},
}

func TestEachAlertFiresForItsTroubleAndAloneAndNotTooEarly(t *testing.T) {
	all := alertRules(t)
	covered := map[string]bool{}
	for name, c := range trouble {
		covered[c.alert] = true
		t.Run(name, func(t *testing.T) {
			world := newWorld(t, all, replaced(healthy, c.series))
			if early := world.firing(c.quiet); len(early) > 0 {
				t.Errorf("after %s these fire already: %v", c.quiet, early)
			}
			firing := world.firing(c.fires)
			if len(firing) != 1 || !strings.HasPrefix(firing[0], c.alert+": ") || !strings.Contains(firing[0], c.says) {
				t.Errorf("after %s: %v, want %s with %q alone", c.fires, firing, c.alert, c.says)
			}
		})
	}
	for _, rule := range all {
		if !covered[rule.Alert] {
			t.Errorf("no test makes %s fire", rule.Alert)
		}
	}
}

func TestNothingFiresForAHealthyHub(t *testing.T) {
	if firing := newWorld(t, alertRules(t), healthy).firing(80 * time.Minute); len(firing) > 0 {
		t.Error(firing)
	}
}

// A person changes single alerts by values; a name or a threshold that is none of the file's is refused.
func TestValuesChangeSingleAlerts(t *testing.T) {
	render := func(alerts map[string]any, runbooks string) (map[string]rulefmt.Rule, error) {
		files, err := RenderChart(Values{"metrics": map[string]any{"rules": map[string]any{"enabled": true, "alerts": alerts, "runbooks": runbooks}}})
		if err != nil {
			return nil, err
		}
		var object struct {
			Spec json.RawMessage `json:"spec"`
		}
		if err := yaml.Unmarshal([]byte(files["monitoring.yaml"]), &object); err != nil {
			return nil, err
		}
		groups, problems := rulefmt.Parse(object.Spec, false, model.UTF8Validation, parser.NewParser(parser.Options{}), slog.Default())
		if len(problems) > 0 {
			return nil, problems[0]
		}
		found := map[string]rulefmt.Rule{}
		for _, rule := range groups.Groups[0].Rules {
			found[rule.Alert] = rule
		}
		return found, nil
	}
	asTheyAre, err := render(nil, "")
	if err != nil {
		t.Fatal(err)
	}
	for _, rule := range alertRules(t) {
		if diff := cmp.Diff(rule, asTheyAre[rule.Alert]); diff != "" {
			t.Errorf("%s is not as in the file: %s", rule.Alert, diff)
		}
	}
	changed, err := render(map[string]any{
		"PlimsollSpotDry":         map[string]any{"enabled": false},
		"PlimsollReconcileErrors": map[string]any{"threshold": 0.5, "for": "1h", "severity": "info"},
	}, "https://wiki.example.com/plimsoll")
	if err != nil {
		t.Fatal(err)
	}
	if _, there := changed["PlimsollSpotDry"]; there || len(changed) != len(asTheyAre)-1 {
		t.Errorf("%d of %d alerts are left", len(changed), len(asTheyAre))
	}
	errors := changed["PlimsollReconcileErrors"]
	if !strings.HasSuffix(errors.Expr, "> 0.5") || errors.For.String() != "1h" || errors.Labels["severity"] != "info" ||
		errors.Annotations["runbook_url"] != "https://wiki.example.com/plimsoll#plimsollreconcileerrors" {
		t.Errorf("%+v", errors)
	}
	for want, alerts := range map[string]map[string]any{
		"metrics.rules.alerts.PlimsollSpotWet: there is no such alert; there are PlimsollCertificateExpires": {"PlimsollSpotWet": map[string]any{"enabled": false}},
		"metrics.rules.alerts.PlimsollNoOwner.threshold: this alert compares with no threshold":              {"PlimsollNoOwner": map[string]any{"threshold": 3}},
	} {
		if _, err := render(alerts, ""); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: error %v, want %q", alerts, err, want)
		}
	}
}

// Whoever is paged follows the link: each alert has its section, with the same five parts.
func TestEachAlertHasARunbook(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(root, "docs", "runbooks.md"))
	if err != nil {
		t.Fatal(err)
	}
	sections := map[string]string{}
	for _, section := range strings.Split(string(page), "\n## ")[1:] {
		name, text, _ := strings.Cut(section, "\n")
		sections[name] = text
	}
	for _, rule := range alertRules(t) {
		text, found := sections[rule.Alert]
		if !found {
			t.Errorf("docs/runbooks.md has no section %s", rule.Alert)
			continue
		}
		delete(sections, rule.Alert)
		for _, part := range []string{"**Meaning.**", "**Impact.**", "**Causes.**", "**Look at.**", "**Fix.**"} {
			if !strings.Contains(text, part) {
				t.Errorf("the runbook of %s has no %s", rule.Alert, part)
			}
		}
		if want := "https://github.com/plimsoll-dev/plimsoll/blob/main/docs/runbooks.md#" + strings.ToLower(rule.Alert); rule.Annotations["runbook_url"] != want {
			t.Errorf("%s links to %q, not to %s", rule.Alert, rule.Annotations["runbook_url"], want)
		}
	}
	for name := range sections {
		t.Errorf("docs/runbooks.md has a section for %s, which is no alert", name)
	}
}

func TestAHubThatIsNotThereHasNoOwner(t *testing.T) {
	firing := newWorld(t, alertRules(t), "load 1m\n  up{job=\"other\"} 1x90").firing(10 * time.Minute)
	if len(firing) != 1 || !strings.HasPrefix(firing[0], "PlimsollNoOwner: ") {
		t.Error(firing)
	}
}

// replaced puts a series in the place of the one with its labels, or at the end.
func replaced(world, series string) string {
	name := series[:strings.Index(series, "}")+1]
	lines := strings.Split(strings.TrimSpace(world), "\n")
	lines = slices.DeleteFunc(lines, func(line string) bool { return strings.HasPrefix(strings.TrimSpace(line), name) })
	return strings.Join(append(lines, "  "+series), "\n")
}

// world is Prometheus with the alerts, over series that are known beforehand.
type world struct {
	t     *testing.T
	rules []*rules.AlertingRule
	query rules.QueryFunc
	now   time.Duration
}

func newWorld(t *testing.T, all []rulefmt.Rule, series string) *world {
	t.Helper()
	storage := promqltest.LoadedStorage(t, series)
	t.Cleanup(func() { _ = storage.Close() })
	engine := promqltest.NewTestEngine(t, false, 0, promqltest.DefaultMaxSamplesPerQuery)
	w := &world{t: t, query: rules.EngineQueryFunc(engine, storage)}
	for _, rule := range all {
		expr, err := parser.NewParser(parser.Options{}).ParseExpr(rule.Expr)
		if err != nil {
			t.Fatal(err)
		}
		w.rules = append(w.rules, rules.NewAlertingRule(rule.Alert, expr, time.Duration(rule.For), time.Duration(rule.KeepFiringFor),
			labels.FromMap(rule.Labels), labels.FromMap(rule.Annotations), labels.EmptyLabels(), "", true, slog.New(slog.DiscardHandler)))
	}
	return w
}

// firing goes on to a time, minute by minute, and returns the alerts that fire then, each as its name and summary.
func (w *world) firing(at time.Duration) []string {
	w.t.Helper()
	var firing []string
	for ; w.now <= at; w.now += time.Minute {
		firing = nil
		for _, rule := range w.rules {
			if _, err := rule.Eval(w.t.Context(), 0, time.Unix(0, 0).Add(w.now), w.query, nil, 0); err != nil {
				w.t.Fatal(err)
			}
			for _, alert := range rule.ActiveAlerts() {
				if alert.State == rules.StateFiring {
					firing = append(firing, rule.Name()+": "+alert.Annotations.Get("summary"))
				}
			}
		}
	}
	return firing
}

var (
	metricName = regexp.MustCompile(`plimsoll_[a-z_]+`)
	quoted     = regexp.MustCompile(`"(plimsoll_[a-z_]+)"`)
	spaced     = regexp.MustCompile(`metricsNamespace, (?:Name: |"", )"([a-z_]+)"`)
)

// The hub shows most series only once there is something to count, so its sources are asked for the names.
func TestEveryMetricOfAnAlertIsOneOfTheHub(t *testing.T) {
	known := map[string]bool{}
	for _, folder := range []string{"hub", "clusters", "reconcile", "webhook"} {
		err := filepath.WalkDir(filepath.Join(root, folder), func(path string, entry os.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			source, err := os.ReadFile(path)
			for _, found := range quoted.FindAllStringSubmatch(string(source), -1) {
				known[found[1]] = true
			}
			for _, found := range spaced.FindAllStringSubmatch(string(source), -1) {
				known["plimsoll_"+found[1]] = true
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	var missing []string
	for _, rule := range alertRules(t) {
		for _, name := range metricName.FindAllString(rule.Expr, -1) {
			if !known[name] {
				missing = append(missing, rule.Alert+" asks for "+name)
			}
		}
	}
	if diff := cmp.Diff([]string(nil), missing); diff != "" {
		t.Error(diff)
	}
}
