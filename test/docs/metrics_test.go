package docs

import (
	"fmt"
	"go/ast"
	"go/types"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// metric is one that the code creates.
type metric struct {
	name, kind, help, in string
	labels               []string
}

const prometheusPath = "github.com/prometheus/client_golang/prometheus"

// constructors of metrics, and what they create. What is created from a description alone is a gauge: see the test.
var constructors = map[string]string{
	"NewCounter": "counter", "NewCounterVec": "counter", "NewCounterFunc": "counter",
	"NewGauge": "gauge", "NewGaugeVec": "gauge", "NewGaugeFunc": "gauge",
	"NewHistogram": "histogram", "NewHistogramVec": "histogram",
	"NewSummary": "summary", "NewSummaryVec": "summary", "NewDesc": "gauge",
}

// metricsOf are the metrics of the code.
func metricsOf(s *source) map[string]metric {
	found := map[string]metric{}
	for name, kind := range constructors {
		constructor := s.functionIfUsed(prometheusPath, name)
		if constructor == nil {
			continue
		}
		for _, at := range s.callsOf(constructor) {
			for _, m := range s.created(at) {
				m.kind, m.name = kind, "plimsoll_"+strings.TrimPrefix(m.name, "plimsoll_") // options may give the prefix apart
				found[m.name] = m
			}
		}
	}
	return found
}

// functionIfUsed is a function that the code calls; nil where it does not.
func (s *source) functionIfUsed(path, name string) types.Object {
	for called := range s.sites {
		if fullName(called) == path+"."+name {
			return called
		}
	}
	return nil
}

// created are the metrics that a call of a constructor creates: one, or as many as there are calls of the function that wraps it.
func (s *source) created(at site) []metric {
	name, help, constant, labels := optionsOf(at)
	m := metric{in: at.in.PkgPath, labels: constant}
	text, known := textOf(at.in, name)
	if known {
		m.name = text
		m.help, known = textOf(at.in, help)
		if labels != nil && known {
			m.labels = append(m.labels, s.texts(at, labels)...)
		}
		if !known {
			s.Errorf("%s: the help of %s is not constant", s.where(at.in, at.call), m.name)
		}
		return []metric{m}
	}
	wrapper, ofName, isWrapped := s.parameter(at, name)
	_, ofHelp, hasHelp := s.parameter(at, help)
	if !isWrapped || !hasHelp {
		s.Fatalf("%s: cannot find the name of this metric", s.where(at.in, at.call))
	}
	_, ofLabels, hasLabels := s.parameter(at, labels)
	var all []metric
	for _, call := range s.callsOf(wrapper) {
		one := metric{in: call.in.PkgPath, labels: slices.Clone(constant)}
		one.name, _ = textOf(call.in, call.call.Args[ofName])
		one.help, _ = textOf(call.in, call.call.Args[ofHelp])
		if hasLabels {
			for _, label := range call.call.Args[ofLabels:] {
				one.labels = append(one.labels, s.texts(call, label)...)
			}
		}
		all = append(all, one)
	}
	return all
}

// optionsOf are the arguments of a constructor: those of NewDesc, or the fields of its options and the labels after them.
func optionsOf(at site) (name, help ast.Expr, constant []string, labels ast.Expr) {
	args := at.call.Args
	options, isLiteral := args[0].(*ast.CompositeLit)
	if !isLiteral {
		return args[0], args[1], nil, args[2]
	}
	for _, field := range options.Elts {
		set := field.(*ast.KeyValueExpr)
		switch set.Key.(*ast.Ident).Name {
		case "Name":
			name = set.Value
		case "Help":
			help = set.Value
		case "ConstLabels":
			for _, label := range set.Value.(*ast.CompositeLit).Elts {
				text, _ := textOf(at.in, label.(*ast.KeyValueExpr).Key)
				constant = append(constant, text)
			}
		}
	}
	if len(args) > 1 {
		if _, isFunction := at.in.TypesInfo.Types[args[1]].Type.Underlying().(*types.Signature); !isFunction {
			labels = args[1]
		}
	}
	return name, help, constant, labels
}

// texts are the elements of a constant list of texts, or the one that an expression is.
func (s *source) texts(at site, expression ast.Expr) (all []string) {
	list, isList := expression.(*ast.CompositeLit)
	if !isList {
		text, known := textOf(at.in, expression)
		if !known && at.in.TypesInfo.Types[expression].IsNil() {
			return nil
		}
		if !known {
			s.Errorf("%s: the labels are not constant", s.where(at.in, expression))
		}
		return []string{text}
	}
	for _, element := range list.Elts {
		all = append(all, s.texts(at, element)...)
	}
	return all
}

// subjects are the parts of the page, in their order, with the packages whose metrics they list.
var subjects = []struct {
	title    string
	packages []string
}{
	{"Members", []string{"clusters"}},
	{"Ownership, certificates, tokens", []string{"hub", "hub/leadership"}},
	{"Reconciles and queue", []string{"reconcile"}},
	{"Placement between spot and on-demand", []string{"reconcile/spot/report"}},
	{"Admission", []string{"webhook", "webhook/kinds"}},
	{"FleetPlacements", []string{"reconcile/fleet/placing"}},
	{"API", []string{"hub/api"}},
}

// unitOf is what a metric counts in, which its name says as Prometheus recommends.
func unitOf(m metric) string {
	switch {
	case strings.HasSuffix(m.name, "_timestamp_seconds"):
		return "Unix time"
	case strings.HasSuffix(strings.TrimSuffix(m.name, "_total"), "_seconds"):
		return "seconds"
	case strings.HasSuffix(m.name, "_bytes"):
		return "bytes"
	}
	return "number"
}

const (
	metricsBegin = "<!-- Made from the code by: go test ./test/docs -run TestTheReferenceOfMetrics -update -->\n"
	eventsBegin  = "<!-- Made from the code by: go test ./test/docs -run TestTheReferenceOfEvents -update -->\n"
	madeEnd      = "<!-- end -->\n"
)

// holds compares what a page has between its marks with what it has to be, and writes it with -update.
func holds(t *testing.T, page, begin, is string) {
	t.Helper()
	path := filepath.Join(root, "docs", page)
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, begins := strings.Cut(string(content), begin)
	was, after, ends := strings.Cut(rest, madeEnd)
	switch {
	case !begins || !ends:
		t.Fatalf("%s has no reference between its marks", page)
	case *update:
		if err := os.WriteFile(path, []byte(before+begin+is+madeEnd+after), 0o600); err != nil {
			t.Fatal(err)
		}
	case is != was:
		written, wanted := strings.Split(was, "\n"), strings.Split(is, "\n")
		for _, line := range written {
			if !slices.Contains(wanted, line) {
				t.Errorf("%s has a line that the code does not say:\n%s", page, line)
			}
		}
		for _, line := range wanted {
			if !slices.Contains(written, line) {
				t.Errorf("%s lacks this line:\n%s", page, line)
			}
		}
		t.Errorf("%s is not what the code says: run this test with -update", page)
	}
}

// cell is text that fits into a cell of a table.
func cell(text string) string {
	return strings.NewReplacer("|", `\|`, "<", "&lt;", "\n", " ").Replace(text)
}

func TestTheReferenceOfMetrics(t *testing.T) {
	found := metricsOf(readSource(t))
	if len(found) < 45 {
		t.Fatalf("%d metrics: the expression finds too few", len(found))
	}
	var page strings.Builder
	listed := 0
	for _, subject := range subjects {
		fmt.Fprintf(&page, "\n## %s\n\n| series | type | unit | labels | meaning |\n|---|---|---|---|---|\n", subject.title)
		for _, name := range slices.Sorted(maps.Keys(found)) {
			m := found[name]
			if !slices.Contains(subject.packages, strings.TrimPrefix(m.in, module)) {
				continue
			}
			listed++
			if m.help == "" || !strings.HasSuffix(m.help, ".") {
				t.Errorf("the help of %s is no sentence: %q", name, m.help)
			}
			fmt.Fprintf(&page, "| `%s` | %s | %s | %s | %s |\n", name, m.kind, unitOf(m), quotedList(m.labels), cell(m.help))
		}
	}
	if listed != len(found) {
		t.Errorf("%d of %d metrics are in packages that no part of the page is about", len(found)-listed, len(found))
	}
	page.WriteString("\n")
	holds(t, "metrics.md", metricsBegin, page.String())
}

// quotedList are words as code, with commas.
func quotedList(words []string) string {
	var quoted []string
	for _, word := range words {
		quoted = append(quoted, "`"+word+"`")
	}
	return strings.Join(quoted, ", ")
}

// A number that is shown from a description alone is a gauge, which the reference says of all of them.
func TestWhatIsCollectedFromDescriptionsIsAGauge(t *testing.T) {
	s, seen := readSource(t), 0
	for _, name := range []string{"MustNewConstMetric", "NewConstMetric"} {
		function := s.functionIfUsed(prometheusPath, name)
		if function == nil {
			continue
		}
		for _, at := range s.callsOf(function) {
			seen++
			if kind, is := at.call.Args[1].(*ast.SelectorExpr); !is || kind.Sel.Name != "GaugeValue" {
				t.Errorf("%s creates no gauge: the reference of metrics has to know", s.where(at.in, at.call))
			}
		}
	}
	if seen < 10 {
		t.Errorf("%d metrics are collected from descriptions: this looks in the wrong place", seen)
	}
}

// The labels of all series are explained, and no others.
func TestTheLabelsOfMetricsAreExplained(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "docs", "metrics.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, table, found := strings.Cut(string(text), "\n## Labels\n")
	if !found {
		t.Fatal("metrics.md has no part about labels")
	}
	table, _, _ = strings.Cut(table, "\n## ")
	explained := map[string]bool{}
	for _, row := range regexp.MustCompile(`(?m)^\| ([^|]+) \|`).FindAllStringSubmatch(table, -1) {
		for _, label := range regexp.MustCompile("`([a-z_]+)`").FindAllStringSubmatch(row[1], -1) {
			explained[label[1]] = true
		}
	}
	used := map[string]bool{}
	for _, m := range metricsOf(readSource(t)) {
		for _, label := range m.labels {
			used[label] = true
		}
	}
	for label := range used {
		if !explained[label] {
			t.Errorf("metrics.md does not explain the label %s", label)
		}
	}
	for label := range explained {
		if !used[label] {
			t.Errorf("metrics.md explains the label %s, which no series has", label)
		}
	}
}
