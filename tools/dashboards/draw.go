package main

import (
	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/cog/variants"
	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/stat"
	"github.com/grafana/grafana-foundation-sdk/go/statetimeline"
	"github.com/grafana/grafana-foundation-sdk/go/table"
	"github.com/grafana/grafana-foundation-sdk/go/timeseries"
)

type prometheusQuery = variants.Dataquery

// drawn is a panel at its place. It is one builder for all kinds, because each of Grafana's has a type of its own.
type drawn struct {
	panel
	id, width uint32
}

// Build implements cog.Builder.
func (d drawn) Build() (dashboard.Panel, error) {
	switch d.kind {
	case number:
		return d.number()
	case columns:
		return d.table()
	case timeline:
		return d.timeline()
	}
	return d.lines()
}

func (d drawn) lines() (dashboard.Panel, error) {
	builder := timeseries.NewPanelBuilder().Id(d.id).Title(d.title).Description(d.about).Datasource(source).
		Span(d.width).Height(d.height()).Targets(d.targets()).Unit(d.unit).Min(0).FillOpacity(10).
		ShowPoints(common.VisibilityModeNever).Thresholds(d.limits()).
		Legend(common.NewVizLegendOptionsBuilder().ShowLegend(true).DisplayMode(common.LegendDisplayModeList).Placement(common.LegendPlacementBottom)).
		Tooltip(common.NewVizTooltipOptionsBuilder().Mode(common.TooltipDisplayModeMulti).Sort(common.SortOrderDescending))
	if d.stacked {
		builder.Stacking(common.NewStackingConfigBuilder().Mode(common.StackingModeNormal)).FillOpacity(40)
	}
	if d.red > 0 {
		builder.ThresholdsStyle(common.NewGraphThresholdsStyleConfigBuilder().Mode(common.GraphThresholdsStyleModeDashed))
	}
	return builder.Build()
}

func (d drawn) number() (dashboard.Panel, error) {
	return stat.NewPanelBuilder().Id(d.id).Title(d.title).Description(d.about).Datasource(source).
		Span(d.width).Height(d.height()).Targets(d.targets()).Unit(d.unit).Thresholds(d.limits()).
		GraphMode(common.BigValueGraphModeNone).ColorMode(common.BigValueColorModeValue).
		ReduceOptions(common.NewReduceDataOptionsBuilder().Calcs([]string{"lastNotNull"})).Build()
}

// timeline shows which of several series is there: the member's state.
func (d drawn) timeline() (dashboard.Panel, error) {
	return statetimeline.NewPanelBuilder().Id(d.id).Title(d.title).Description(d.about).Datasource(source).
		Span(d.width).Height(d.height()).Targets(d.targets()).Thresholds(d.limits()).ShowValue(common.VisibilityModeNever).Build()
}

// table puts the queries beside each other, one column each: Grafana calls the values by the queries' letters.
func (d drawn) table() (dashboard.Panel, error) {
	names, order := map[string]string{}, map[string]int{}
	for i, q := range d.queries {
		names["Value #"+refID(i)] = q.legend
		order["Value #"+refID(i)] = 10 + i // behind the labels
	}
	return table.NewPanelBuilder().Id(d.id).Title(d.title).Description(d.about).Datasource(source).
		Span(d.width).Height(d.height()).Targets(d.targets()).Filterable(true).
		Transformations([]dashboard.DataTransformerConfig{
			{Id: "merge", Options: map[string]any{}},
			{Id: "organize", Options: map[string]any{
				"excludeByName": map[string]bool{"Time": true}, "renameByName": names, "indexByName": order,
			}},
		}).
		OverrideByName("member", []dashboard.DynamicConfigValue{{Id: "links", Value: []map[string]string{
			{"title": "Open the member", "url": "/d/plimsoll-member?var-member=${__value.raw}&${datasource:queryparam}&${__url_time_range}"},
		}}}).Build()
}

var _ cog.Builder[dashboard.Panel] = drawn{}
