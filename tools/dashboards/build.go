package main

import (
	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/prometheus"
)

// tag is on every dashboard, so that each links to the others.
const tag = "plimsoll"

// source is the Prometheus that is chosen at the head of a dashboard.
var source = common.DataSourceRef{Type: cog.ToPtr("prometheus"), Uid: cog.ToPtr("${datasource}")}

// build says a board in Grafana's terms.
func build(b board) (dashboard.Dashboard, error) {
	builder := dashboard.NewDashboardBuilder(b.title).Uid("plimsoll-"+b.name).Description(b.about).Tags([]string{tag}).
		Readonly().Tooltip(dashboard.DashboardCursorSyncCrosshair).Time("now-6h", "now").Refresh("1m").Timezone("browser").
		Link(dashboard.NewDashboardLinkBuilder("Plimsoll").Type(dashboard.DashboardLinkTypeDashboards).Tags([]string{tag}).
			AsDropdown(true).IncludeVars(true).KeepTime(true)).
		WithVariable(dashboard.NewDatasourceVariableBuilder("datasource").Label("Data source").Type("prometheus"))
	for _, v := range b.variables {
		builder.WithVariable(choice(v))
	}
	id := uint32(0)
	for _, r := range b.rows {
		id++
		builder.WithRow(dashboard.NewRowBuilder(r.title).Id(id))
		for i, p := range r.panels {
			id++
			builder.WithPanel(drawn{panel: p, id: id, width: width(r.panels, i)})
		}
	}
	return builder.Build()
}

func choice(v variable) cog.Builder[dashboard.VariableModel] {
	asked := "label_values(" + v.of + ")"
	builder := dashboard.NewQueryVariableBuilder(v.name).Datasource(source).Query(dashboard.StringOrMap{String: &asked}).Definition(asked).
		Refresh(dashboard.VariableRefreshOnTimeRangeChanged).Sort(dashboard.VariableSortNaturalAsc)
	if v.all {
		everything := dashboard.VariableOption{
			Text:  dashboard.StringOrArrayOfString{String: cog.ToPtr("All")},
			Value: dashboard.StringOrArrayOfString{String: cog.ToPtr("$__all")},
		}
		builder.Multi(true).IncludeAll(true).AllValue(".*").Current(everything)
	}
	return builder
}

// width shares the 24 columns of the grid: numbers beside each other, everything else two in a line.
func width(panels []panel, i int) uint32 {
	switch p := panels[i]; {
	case p.wide:
		return 24
	case p.kind == number:
		numbers := uint32(0)
		for _, other := range panels {
			if other.kind == number {
				numbers++
			}
		}
		return 24 / numbers
	}
	return 12
}

// height is the number of grid rows.
func (p panel) height() uint32 {
	if p.kind == number {
		return 4
	}
	return 8
}

// targets are a panel's queries; a number and a table ask for the last values alone.
func (p panel) targets() []cog.Builder[prometheusQuery] {
	var all []cog.Builder[prometheusQuery]
	for i, q := range p.queries {
		target := prometheus.NewDataqueryBuilder().Datasource(source).Expr(q.expr).LegendFormat(q.legend).RefId(refID(i))
		switch p.kind {
		case columns:
			target.Instant().Format(prometheus.PromQueryFormatTable)
		case number:
			target.Instant()
		default:
			target.Range()
		}
		all = append(all, target)
	}
	return all
}

// refID is how Grafana names the queries of a panel: A, B and so on.
func refID(i int) string { return string(rune('A' + i)) }

// limits colour a panel red from a value on.
func (p panel) limits() cog.Builder[dashboard.ThresholdsConfig] {
	steps := []dashboard.Threshold{{Color: "green"}}
	if p.red > 0 {
		steps = append(steps, dashboard.Threshold{Value: cog.ToPtr(p.red), Color: "red"})
	}
	return dashboard.NewThresholdsConfigBuilder().Mode(dashboard.ThresholdsModeAbsolute).Steps(steps)
}
