package deploy

import (
	"encoding/json"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/promql/promqltest"
	"github.com/prometheus/prometheus/storage"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// dashboard is what of a Grafana dashboard has to do with Prometheus.
type dashboard struct {
	UID        string `json:"uid"`
	Templating struct {
		List []struct {
			Name, Type string
			Query      string
		} `json:"list"`
	} `json:"templating"`
	Panels []struct {
		ID          int    `json:"id"`
		Type        string `json:"type"`
		Title       string `json:"title"`
		Description string `json:"description"`
		Targets     []struct {
			Expr   string `json:"expr"`
			Legend string `json:"legendFormat"`
		} `json:"targets"`
	} `json:"panels"`
}

// dashboards are those of the chart, as it renders them.
func dashboards(t *testing.T) map[string]dashboard {
	t.Helper()
	all := map[string]dashboard{}
	for key, object := range render(t, "metrics: {dashboards: {enabled: true}}").Kind("ConfigMap") {
		data, _, err := unstructured.NestedStringMap(object.Object, "data")
		if err != nil {
			t.Fatal(err)
		}
		for name, text := range data {
			if !strings.HasSuffix(name, ".json") {
				continue
			}
			if object.GetLabels()["grafana_dashboard"] != "1" {
				t.Errorf("%s has no label that Grafana's sidecar looks for: %v", key, object.GetLabels())
			}
			var one dashboard
			if err := json.Unmarshal([]byte(text), &one); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			all[strings.TrimSuffix(name, ".json")] = one
		}
	}
	if len(all) != 5 {
		t.Fatalf("%d dashboards: %v", len(all), slices.Collect(maps.Keys(all)))
	}
	return all
}

func TestEveryMetricOfTheHubIsKnownHere(t *testing.T) {
	known, made := series(t), kinds(t)
	for name := range made {
		if known[name] == nil {
			t.Errorf("everything has no %s", name)
		}
	}
	for name := range known {
		if made[name] == "" {
			t.Errorf("no source of the hub makes %s", name)
		}
	}
}

// asSent is a query as Grafana sends it.
func asSent(expr string) string {
	return strings.NewReplacer("$__rate_interval", "5m", "$__range", "10m", "$job", ".*", "$member", "prod-eu", "$namespace", ".*", "$name", ".*").Replace(expr)
}

var (
	inLegend    = regexp.MustCompile(`\{\{(\w+)\}\}`)
	labelValues = regexp.MustCompile(`^label_values\((.+), (\w+)\)$`)
)

func TestTheQueriesOfTheDashboardsAreAnswered(t *testing.T) {
	scraped := everythingScraped(t)
	ask := asker(t, scraped)
	for name, board := range dashboards(t) {
		if board.UID != name {
			t.Errorf("%s has uid %s", name, board.UID)
		}
		ids := map[int]bool{}
		for _, panel := range board.Panels {
			if ids[panel.ID] {
				t.Errorf("%s: id %d is there twice", name, panel.ID)
			}
			ids[panel.ID] = true
			if panel.Type == "row" {
				continue
			}
			if len(panel.Targets) == 0 || panel.Description == "" {
				t.Errorf("%s, %s: has %d queries and description %q", name, panel.Title, len(panel.Targets), panel.Description)
			}
			for _, target := range panel.Targets {
				where := name + ", " + panel.Title
				namesExist(t, where, target.Expr)
				answer := ask(where, target.Expr)
				if len(answer) == 0 {
					t.Errorf("%s: nothing answers %s", where, target.Expr)
				}
				for _, sample := range answer {
					for _, label := range inLegend.FindAllStringSubmatch(target.Legend, -1) {
						if sample.Metric.Get(label[1]) == "" {
							t.Errorf("%s: the legend %q names a label that %s does not have", where, target.Legend, sample.Metric)
						}
					}
				}
			}
		}
		for _, variable := range board.Templating.List {
			if variable.Type != "query" {
				continue
			}
			asked := labelValues.FindStringSubmatch(variable.Query)
			if asked == nil {
				t.Fatalf("%s: variable %s asks %q", name, variable.Name, variable.Query)
			}
			namesExist(t, name+", variable "+variable.Name, asked[1])
			for _, sample := range ask(name, asked[1]) {
				if sample.Metric.Get(asked[2]) == "" {
					t.Errorf("%s: variable %s asks for label %s of %s", name, variable.Name, asked[2], sample.Metric)
				}
			}
		}
	}
}

// namesExist checks each selector of a query: the metric is one of the hub, and has the labels that are matched. A matcher of a
// label that no series has would let everything through.
func namesExist(t *testing.T, where, expr string) {
	t.Helper()
	parsed, err := parser.NewParser(parser.Options{}).ParseExpr(asSent(expr))
	if err != nil {
		t.Fatalf("%s: %s: %v", where, expr, err)
	}
	known, made := series(t), kinds(t)
	parser.Inspect(parsed, func(node parser.Node, _ []parser.Node) error {
		selector, ok := node.(*parser.VectorSelector)
		if !ok || selector.Name == "up" {
			return nil
		}
		name := strings.TrimSuffix(selector.Name, "_bucket")
		if (made[name] == "Histogram") != (name != selector.Name) || known[name] == nil {
			t.Errorf("%s: the hub has no %s", where, selector.Name)
			return nil
		}
		for _, matcher := range selector.LabelMatchers {
			if matcher.Name != model.MetricNameLabel && matcher.Name != "job" && known[name][0].Get(matcher.Name) == "" {
				t.Errorf("%s: %s has no label %s", where, selector.Name, matcher.Name)
			}
		}
		return nil
	})
}

// asker runs queries with Prometheus' engine, five minutes after the first scrape, and leaves out what is no number.
func asker(t *testing.T, scraped storage.Queryable) func(where, expr string) promql.Vector {
	engine := promqltest.NewTestEngine(t, false, 0, promqltest.DefaultMaxSamplesPerQuery)
	return func(where, expr string) promql.Vector {
		t.Helper()
		query, err := engine.NewInstantQuery(t.Context(), scraped, nil, asSent(expr), time.Unix(0, 0).Add(5*time.Minute))
		if err != nil {
			t.Fatalf("%s: %s: %v", where, expr, err)
		}
		defer query.Close()
		answer, err := query.Exec(t.Context()).Vector()
		if err != nil {
			t.Fatalf("%s: %s: %v", where, expr, err)
		}
		kept := slices.DeleteFunc(slices.Clone(answer), func(sample promql.Sample) bool { return math.IsNaN(sample.F) })
		return kept
	}
}
