package main

import (
	"bufio"
	"fmt"
	"image/color"
	"os"
	"path/filepath"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"

	"github.com/plimsoll-dev/plimsoll/reconcile/fleet/replay"
)

// colours of the policies, which can be distinguished by those who do not see all colours.
var colours = []color.Color{
	color.RGBA{R: 0x00, G: 0x72, B: 0xb2, A: 0xff},
	color.RGBA{R: 0xe6, G: 0x9f, B: 0x00, A: 0xff},
	color.RGBA{R: 0xcc, G: 0x79, B: 0xa7, A: 0xff},
}

// Draw writes an SVG of the ready replicas and the cost over time into a folder, and returns its name.
func Draw(folder string, t replay.Trace, s replay.Setting, curves []*replay.Curve) (string, error) {
	ready := plot.New()
	ready.Title.Text = fmt.Sprintf("%s: %d replicas, start %d s, notice %d s", t.Name, s.Replicas, s.Start, s.Notice)
	ready.Y.Label.Text, ready.Y.Min = "ready replicas (least)", 0
	cost := plot.New()
	cost.Y.Label.Text, cost.Y.Min = "cost, % of all on-demand", 0
	cost.X.Label.Text = "days"
	for i, c := range curves {
		for _, part := range []struct {
			plot   *plot.Plot
			values []float64
			times  float64
		}{{ready, c.Ready, 1}, {cost, c.Cost, 100}} {
			line, err := plotter.NewLine(pointsOf(c, part.values, part.times))
			if err != nil {
				return "", fmt.Errorf("plot of %s: %w", t.Name, err)
			}
			line.StepStyle = plotter.PostStep
			line.Color = colours[i%len(colours)]
			part.plot.Add(line)
			part.plot.Legend.Add(c.Name, line)
		}
	}
	wanted := plotter.NewFunction(func(float64) float64 { return float64(s.Replicas) })
	wanted.Dashes = []vg.Length{vg.Points(3), vg.Points(3)}
	ready.Add(wanted)
	ready.Legend.Add("wanted", wanted)

	file := filepath.Join(folder, fmt.Sprintf("%s-start-%d-notice-%d.svg", strings.ReplaceAll(filepath.ToSlash(t.Name), "/", "-"), s.Start, s.Notice))
	return file, writeSVG(file, ready, cost)
}

// pointsOf are a curve's values by the day.
func pointsOf(c *replay.Curve, values []float64, times float64) plotter.XYs {
	points := make(plotter.XYs, len(values))
	for i, v := range values {
		points[i] = plotter.XY{X: float64(i) * c.Part / 86400, Y: v * times}
	}
	return points
}

// writeSVG writes plots into a file, one below the other.
func writeSVG(file string, plots ...*plot.Plot) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	canvas := vgsvg.New(30*vg.Centimeter, 9*vg.Centimeter*vg.Length(len(plots)))
	column := make([][]*plot.Plot, len(plots))
	for i, p := range plots {
		p.Legend.Top = true
		column[i] = []*plot.Plot{p}
	}
	tiles := draw.Tiles{Rows: len(plots), Cols: 1, PadY: vg.Centimeter / 2}
	for i, row := range plot.Align(column, tiles, draw.New(canvas)) {
		plots[i].Draw(row[0])
	}
	out, err := os.Create(file)
	if err != nil {
		return err
	}
	buffered := bufio.NewWriter(out)
	if _, err = canvas.WriteTo(buffered); err == nil {
		err = buffered.Flush()
	}
	if closed := out.Close(); err == nil {
		err = closed
	}
	return err
}
