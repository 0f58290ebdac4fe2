package deploy

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/promql/promqltest"
	"github.com/prometheus/prometheus/storage"
)

// everything are the series of a hub to which everything has happened: a counter counts, a histogram has two buckets. What a hub at
// rest does not show has the reason in seldom; the labels of the others are compared with a running hub's.
const everything = `
plimsoll_owner{}
plimsoll_handovers_total{}
plimsoll_handover_seconds{}
plimsoll_certificate_expiry_timestamp_seconds{certificate="webhook"}
plimsoll_member_state{member="prod-eu",state="Ready"}
plimsoll_member_breaker_open{member="prod-eu"}
plimsoll_member_probe_duration_seconds{member="prod-eu"}
plimsoll_member_refused_total{reason="BadKubeconfig"}
plimsoll_member_requests_total{member="prod-eu",class="read",code="200"}
plimsoll_member_request_duration_seconds{member="prod-eu",class="read"}
plimsoll_member_cache_age_seconds{member="prod-eu",kind="Pod"}
plimsoll_member_cache_bytes{member="prod-eu",kind="Pod"}
plimsoll_member_paced_seconds_total{member="prod-eu"}
plimsoll_member_detached{member="prod-eu"}
plimsoll_member_token_expiry_seconds{member="prod-eu"}
plimsoll_member_token_life_seconds{member="prod-eu"}
plimsoll_webhook_reached{member="prod-eu"}
plimsoll_dependency_watch_age_seconds{member="prod-eu"}
plimsoll_reconcile_total{controller="deployment",member="prod-eu",outcome="done"}
plimsoll_reconcile_errors_total{controller="deployment",member="prod-eu"}
plimsoll_reconcile_panics_total{controller="deployment",member="prod-eu"}
plimsoll_reconcile_duration_seconds{controller="deployment",member="prod-eu"}
plimsoll_reconcile_stuck{controller="deployment",member="prod-eu"}
plimsoll_reconciles_running{controller="deployment",member="prod-eu"}
plimsoll_finalizers_overdue{controller="deployment",member="prod-eu"}
plimsoll_queue_wait_seconds{member="prod-eu",priority="changed"}
plimsoll_queue_depth{controller="deployment",member="prod-eu",priority="changed"}
plimsoll_events_dropped_total{member="prod-eu"}
plimsoll_workload_replicas{member="prod-eu",namespace="shop",kind="Deployment",name="web",capacity="spot",count="actual"}
plimsoll_workload_replicas{member="prod-eu",namespace="shop",kind="Deployment",name="web",capacity="spot",count="wanted"}
plimsoll_workload_replicas{member="prod-eu",namespace="shop",kind="Deployment",name="web",capacity="on-demand",count="actual"}
plimsoll_workload_replicas{member="prod-eu",namespace="shop",kind="Deployment",name="web",capacity="on-demand",count="wanted"}
plimsoll_workload_floor_missing{member="prod-eu",namespace="shop",kind="Deployment",name="web"}
plimsoll_workload_misplaced{member="prod-eu",namespace="shop",kind="Deployment",name="web"}
plimsoll_moves_total{member="prod-eu"}
plimsoll_replacements_total{member="prod-eu",for="insufficient-capacity"}
plimsoll_pods_undecided_total{member="prod-eu"}
plimsoll_plan_seconds{}
plimsoll_reservations_live{member="prod-eu"}
plimsoll_spot_dry{member="prod-eu",capacity="spot"}
plimsoll_admissions_total{member="prod-eu",outcome="spot"}
plimsoll_admission_duration_seconds{member="prod-eu"}
plimsoll_admission_rejected_total{reason="not_found"}
plimsoll_fleet_placements{reason="Placed"}
plimsoll_fleet_replicas{member="prod-eu",capacity="spot",state="wanted"}
plimsoll_fleet_moves_total{member="prod-eu",capacity="spot",direction="up"}
plimsoll_fleet_plan_seconds{}
plimsoll_fleet_members{member="prod-eu",state="Lost"}
plimsoll_fleet_history_entries{}
plimsoll_fleet_history_bytes{}
plimsoll_fleet_history_dropped_total{}
plimsoll_kind_calls_total{kind="webapps",call="validate",outcome="ok"}
plimsoll_api_requests_total{method="/plimsoll.v1.ClusterService/ListClusters",code="OK"}
plimsoll_api_request_duration_seconds{method="/plimsoll.v1.ClusterService/ListClusters"}
`

const withFleet = "only with fleet.enabled"

// seldom says why a hub that has just placed some pods does not show a metric, or no value of it. The test of the runbooks sees these in
// its states, but for those in never.
var seldom = map[string]string{
	"plimsoll_fleet_placements":             withFleet,
	"plimsoll_fleet_replicas":               withFleet,
	"plimsoll_fleet_moves_total":            withFleet,
	"plimsoll_fleet_plan_seconds":           withFleet,
	"plimsoll_fleet_members":                withFleet,
	"plimsoll_fleet_history_entries":        withFleet,
	"plimsoll_fleet_history_bytes":          withFleet,
	"plimsoll_fleet_history_dropped_total":  withFleet,
	"plimsoll_handover_seconds":             "only where another replica has acted before",
	"plimsoll_member_refused_total":         "counts refused registrations",
	"plimsoll_member_detached":              "only for members that were given up",
	"plimsoll_member_token_expiry_seconds":  "only for tokens that expire",
	"plimsoll_member_token_life_seconds":    "only for tokens that expire",
	"plimsoll_dependency_watch_age_seconds": "only where a reconciler waits for what its objects depend on",
	"plimsoll_reconcile_errors_total":       "counts failures",
	"plimsoll_reconcile_panics_total":       "counts panics",
	"plimsoll_events_dropped_total":         "counts Events that could not be recorded",
	"plimsoll_moves_total":                  "counts moves; new pods are placed as they are created",
	"plimsoll_replacements_total":           "counts pods whose node goes or whose capacity is dry",
	"plimsoll_pods_undecided_total":         "counts pods that no webhook has decided",
	"plimsoll_reservations_live":            "only until pods that were admitted are seen",
	"plimsoll_spot_dry":                     "only once a pod found no room",
	"plimsoll_admission_rejected_total":     "counts calls of strangers",
	"plimsoll_kind_calls_total":             "counts calls about WebApps and other modules' kinds",
}

// series are the lines of everything, by metric, with their labels.
func series(t *testing.T) map[string][]labels.Labels {
	t.Helper()
	found := map[string][]labels.Labels{}
	for line := range strings.Lines(strings.TrimSpace(everything)) {
		metric, err := parser.NewParser(parser.Options{}).ParseMetric(strings.TrimSpace(line))
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		name := metric.Get(model.MetricNameLabel)
		found[name] = append(found[name], metric)
	}
	return found
}

// everythingScraped is everything as Prometheus has it after some minutes of scraping.
func everythingScraped(t *testing.T) storage.Storage {
	t.Helper()
	var load strings.Builder
	load.WriteString("load 1m\n  up{job=\"plimsoll-metrics\",instance=\"a\"} 1x10\n")
	for name, all := range series(t) {
		for _, one := range all {
			for _, part := range []struct{ suffix, le, values string }{
				{"", "", "1x10"}, {"_bucket", "0.1", "0+60x10"}, {"_bucket", "+Inf", "0+70x10"},
			} {
				histogram := strings.HasSuffix(name, "_seconds") && kinds(t)[name] == "Histogram"
				if histogram != (part.suffix != "") {
					continue
				}
				if strings.HasSuffix(name, "_total") {
					part.values = "0+60x10"
				}
				scraped := labels.NewBuilder(one).Set(model.MetricNameLabel, name+part.suffix).Set("job", "plimsoll-metrics").Set("instance", "a").Set("le", part.le)
				if one.Get("namespace") == "" {
					scraped.Set("namespace", Namespace)
				}
				fmt.Fprintf(&load, "  %s %s\n", scraped.Labels(), part.values)
			}
		}
	}
	loaded := promqltest.LoadedStorage(t, load.String())
	t.Cleanup(func() { _ = loaded.Close() })
	return loaded
}

var constructed = regexp.MustCompile(`(?s)(New|new|histogram|counter)([A-Za-z]*)\((?:prometheus\.\w+Opts\{)?\s*(?:Namespace: metricsNamespace, |prometheus\.BuildFQName\(metricsNamespace, "", )?(?:Name:\s+)?"([a-z_]+)"`)

// kinds are all metrics of the hub's sources, and how they are made.
func kinds(t *testing.T) map[string]string {
	t.Helper()
	found, err := readKinds()
	if err != nil {
		t.Fatal(err)
	}
	return found
}

var readKinds = sync.OnceValues(func() (map[string]string, error) {
	found := map[string]string{}
	for _, folder := range []string{"hub", "clusters", "reconcile", "webhook"} {
		err := filepath.WalkDir(filepath.Join(root, folder), func(path string, entry os.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			source, err := os.ReadFile(path)
			for _, match := range constructed.FindAllStringSubmatch(string(source), -1) {
				if !strings.HasPrefix(match[3], "plimsoll_") && !strings.Contains(match[0], "metricsNamespace") {
					continue
				}
				name, made := "plimsoll_"+strings.TrimPrefix(match[3], "plimsoll_"), match[1]+match[2]
				if strings.Contains(strings.ToLower(made), "histogram") {
					made = "Histogram"
				}
				found[name] = made
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return found, nil
})
