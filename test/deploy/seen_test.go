package deploy

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/promql/promqltest"
	"github.com/prometheus/prometheus/rules"
)

// never says why a hub in no state of the runbooks shows a metric.
var never = map[string]string{
	"plimsoll_admission_rejected_total":     "counts calls with a wrong token or a wrong body, which no API server sends",
	"plimsoll_dependency_watch_age_seconds": "only where a reconciler waits for what its objects depend on, and those here do not",
	"plimsoll_kind_calls_total":             "counts calls about WebApps and other modules' kinds, which these members do not have",
	"plimsoll_member_detached":              "only for members that somebody has given up",
}

// sometimes says of what it depends whether a hub in these states shows a metric.
var sometimes = map[string]string{
	"plimsoll_events_dropped_total": "counts Events that could not be recorded: whether the member that is cut off had one to record",
}

// queriesOfDashboards are what the dashboards ask, of any member, by the panel with the query.
func queriesOfDashboards(t *testing.T) map[string]string {
	t.Helper()
	queries := map[string]string{}
	for name, board := range dashboards(t) {
		for _, panel := range board.Panels {
			for _, target := range panel.Targets {
				expr := asSent(strings.ReplaceAll(target.Expr, "$member", ".*"))
				queries[name+", "+panel.Title+": "+expr] = expr
			}
		}
	}
	return queries
}

// drop asks the queries at the last scrape, and deletes those that are answered.
func (r *recording) drop(queries map[string]string) error {
	storage := promqltest.LoadedStorage(r.t, r.load())
	defer func() { _ = storage.Close() }()
	engine := promqltest.NewTestEngine(r.t, false, 0, promqltest.DefaultMaxSamplesPerQuery)
	ask, at := rules.EngineQueryFunc(engine, storage), time.Unix(0, 0).Add(time.Duration(r.scrapes-1-r.first())*time.Minute)
	for where, expr := range queries {
		answer, err := ask(r.t.Context(), expr, at)
		if err != nil {
			return err
		}
		if len(answer) > 0 {
			delete(queries, where)
		}
	}
	return nil
}

// checkSeen checks, after all states, that a hub has shown each metric and that each query was answered once, but for those with a
// reason in never or sometimes.
func (r *recording) checkSeen(unanswered map[string]string) {
	r.t.Helper()
	seen := map[string]bool{}
	for key := range r.series {
		name, _, _ := strings.Cut(key, "{")
		seen[strings.TrimSuffix(name, "_bucket")] = true
	}
	for _, name := range slices.Sorted(maps.Keys(series(r.t))) {
		if seen[name] == (never[name] != "") && sometimes[name] == "" {
			r.t.Errorf("%s: seen in a state of the runbooks: %t, reason not to be: %q", name, seen[name], never[name])
		}
	}
	for _, where := range slices.Sorted(maps.Keys(unanswered)) {
		if !slices.ContainsFunc(metricName.FindAllString(unanswered[where], -1), func(name string) bool {
			name = strings.TrimSuffix(name, "_bucket")
			return never[name]+sometimes[name] != ""
		}) {
			r.t.Errorf("in no state of the runbooks a hub answers %s", where)
		}
	}
}
