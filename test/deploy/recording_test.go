package deploy

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/promql/promqltest"
	"github.com/prometheus/prometheus/rules"

	"github.com/plimsoll-dev/plimsoll/test/fleet"
)

// recording is what Prometheus has after some scrapes of real replicas. Each scrape counts as one minute, however soon it came after
// the one before, so that nobody waits for windows of ten minutes.
type recording struct {
	t       *testing.T // of the whole test
	scrapes int
	series  map[string][]float64 // NaN where a scrape did not have it
}

func newRecording(t *testing.T) *recording {
	return &recording{t: t, series: map[string][]float64{}}
}

// add takes one scrape: the samples of each replica by its name. A replica without samples could not be scraped.
func (r *recording) add(replicas map[string]map[string][]fleet.Sample) {
	for replica, all := range replicas {
		up := 0.0
		if len(all) > 0 {
			up = 1
		}
		r.set("up", replica, "", up)
		for name, samples := range all {
			for _, sample := range samples {
				if strings.HasPrefix(name, "plimsoll_") {
					r.set(name, replica, sample.Labels, sample.Value)
				}
			}
		}
	}
	r.scrapes++
}

// window is how many scrapes are loaded: no alert looks further back than 15 minutes.
const window = 40

// first is the oldest scrape that is loaded.
func (r *recording) first() int { return max(0, r.scrapes-window) }

// set notes a sample with the labels that the chart's ServiceMonitor gives it: a workload's namespace stays its own.
func (r *recording) set(name, replica, own string, value float64) {
	key := name + "{" + own
	if own != "" {
		key += ","
	}
	key += `job="plimsoll-metrics",instance="` + replica + `"`
	if !strings.Contains(","+own, ",namespace=") {
		key += `,namespace="` + Namespace + `"`
	}
	key += "}"
	values := r.series[key]
	for len(values) < r.scrapes {
		values = append(values, math.NaN())
	}
	r.series[key] = append(values, value)
}

// load is the recording as promqltest reads it.
func (r *recording) load() string {
	var text strings.Builder
	text.WriteString("load 1m\n")
	real := float64(time.Now().Unix())
	for key, values := range r.series {
		if len(values) <= r.first() {
			continue
		}
		text.WriteString("  " + key)
		for i := r.first(); i < r.scrapes; i++ {
			if i >= len(values) || math.IsNaN(values[i]) || math.IsInf(values[i], 0) {
				text.WriteString(" _")
				continue
			}
			value := values[i]
			if strings.Contains(key, "_timestamp_seconds{") {
				value -= real - float64((r.scrapes-1-r.first())*60) // what is loaded ends now, and begins in 1970
			}
			text.WriteString(" " + strconv.FormatFloat(value, 'f', -1, 64))
		}
		text.WriteString("\n")
	}
	return text.String()
}

// ask runs a query at the last scrape, with Prometheus' engine.
func (r *recording) ask(expr string) (promql.Vector, error) {
	storage := promqltest.LoadedStorage(r.t, r.load())
	defer func() { _ = storage.Close() }()
	engine := promqltest.NewTestEngine(r.t, false, 0, promqltest.DefaultMaxSamplesPerQuery)
	return rules.EngineQueryFunc(engine, storage)(r.t.Context(), expr, time.Unix(0, 0).Add(time.Duration(r.scrapes-1-r.first())*time.Minute))
}

// holds says for which series the expression of an alert is true; its time of waiting is another test's affair.
func (r *recording) holds(rule rulefmt.Rule) (found []string, err error) {
	answer, err := r.ask(rule.Expr)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", rule.Alert, err)
	}
	for _, sample := range answer {
		found = append(found, sample.Metric.String())
	}
	return found, nil
}

func TestARecordingIsWhatPrometheusHasAfterAsManyMinutes(t *testing.T) {
	r := newRecording(t)
	expires := time.Now().Add(time.Hour)
	for i, errors := range []float64{0, 3, 9} {
		samples := map[string][]fleet.Sample{"plimsoll_certificate_expiry_timestamp_seconds": {{Labels: `certificate="webhook"`, Value: float64(expires.Unix())}}}
		if i > 0 {
			samples["plimsoll_reconcile_errors_total"] = []fleet.Sample{{Labels: `member="one"`, Value: errors}}
		}
		r.add(map[string]map[string][]fleet.Sample{"a": samples, "b": nil})
	}
	for expr, want := range map[string]float64{
		`plimsoll_reconcile_errors_total`:                                               9,
		`plimsoll_reconcile_errors_total - (plimsoll_reconcile_errors_total offset 1m)`: 6,
		`up{instance="b"}`: 0,
		`count(plimsoll_reconcile_errors_total offset 2m) or vector(-1)`:     -1,
		`plimsoll_certificate_expiry_timestamp_seconds - time() > bool 3500`: 1,
		`plimsoll_certificate_expiry_timestamp_seconds - time() < bool 3700`: 1,
	} {
		answer, err := r.ask(expr)
		if err != nil || len(answer) != 1 || answer[0].F != want {
			t.Errorf("%s: %v, %v, want %v", expr, answer, err, want)
		}
	}
}

// isQuery reports whether a text is PromQL about series that are scraped.
func isQuery(text string) bool {
	parsed, err := parser.NewParser(parser.Options{}).ParseExpr(text)
	if err != nil {
		return false
	}
	found := false
	parser.Inspect(parsed, func(node parser.Node, _ []parser.Node) error {
		if selector, ok := node.(*parser.VectorSelector); ok {
			found = found || strings.HasPrefix(selector.Name, "plimsoll_") || selector.Name == "up"
		}
		return nil
	})
	return found
}
