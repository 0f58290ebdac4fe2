package main

// A board is one dashboard: what it shows, without how Grafana wants it said.
type board struct {
	name, title, about string
	variables          []variable
	rows               []row
}

type row struct {
	title  string
	panels []panel
}

// A panel shows one or more queries. Each has a sentence that says what a reader learns, or does when it is red.
type panel struct {
	kind          kind
	title, about  string
	unit          string
	queries       []query
	red           float64 // shown in red from this value on; 0: never
	stacked, wide bool
}

// A query and the name of its series; for a table, of its column.
type query struct{ expr, legend string }

type kind int

const (
	lines kind = iota
	number
	columns
	timeline
)

// A variable is chosen at the head of a dashboard, from the values of a label.
type variable struct {
	name, of string
	all      bool // several, or all of them
}

// Units as Grafana names them.
const (
	count     = "short"
	seconds   = "s"
	perSecond = "reqps"
	perMinute = "cpm"
	share     = "percentunit"
	binary    = "bytes"
)

var boards = []board{fleet, member, placement, hub, api}

var (
	ofJob       = variable{name: "job", of: `plimsoll_owner, job`, all: true}
	ofMember    = variable{name: "member", of: `plimsoll_member_state{job=~"$job"}, member`}
	ofMembers   = variable{name: "member", of: `plimsoll_member_state{job=~"$job"}, member`, all: true}
	ofNamespace = variable{name: "namespace", of: `plimsoll_workload_replicas{job=~"$job",member=~"$member"}, namespace`, all: true}
	ofWorkload  = variable{name: "name", of: `plimsoll_workload_replicas{job=~"$job",member=~"$member",namespace=~"$namespace"}, name`, all: true}
)

// owned leaves series to the replica that acts: what another one says of workloads is from when it last acted.
func owned(series string) string {
	return "(" + series + ` and on (job, instance) plimsoll_owner{job=~"$job"} == 1)`
}

// rate is what happens in a second, added up by labels.
func rate(by, series string) string {
	return "sum by (" + by + ") (rate(" + series + "[$__rate_interval]))"
}

// orZero answers 0 where nothing has such a state.
func orZero(expr string) string { return expr + " or vector(0)" }

// quantiles are the median and the 99th percentile of a histogram, each by labels.
func quantiles(by, metric, matchers string) []query {
	group, legend := "le", ""
	if by != "" {
		group, legend = by+", le", " {{"+by+"}}"
	}
	within := rate(group, metric+"_bucket{"+matchers+"}")
	return []query{
		{"histogram_quantile(0.5, " + within + ")", "median" + legend},
		{"histogram_quantile(0.99, " + within + ")", "99 %" + legend},
	}
}

func one(expr, legend string) []query { return []query{{expr, legend}} }
