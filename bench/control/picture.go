package main

import (
	"fmt"
	"strconv"

	"github.com/go-analyze/charts"

	"example.com/forebay/internal/simulate"
)

// picture is lines over time, one of each contender.
type picture struct {
	file, title string
	table       *table
	trial       *trial
	names       []string
	of          func(p simulate.Point) float64
	mean        int // points that make one
}

// pictures are those of trials whose points were kept.
func (r *report) pictures() (all []picture) {
	names := []string{nameOracle, nameOurs, "Gradient2", "AIMD", "Vegas"}
	for _, t := range r.simulated.trials {
		switch {
		case !t.keep:
		case t.suite == "S2":
			all = append(all, picture{"control-soak.svg", "limit, over half an hour at twice the load", r.simulated, t, names, func(p simulate.Point) float64 { return p.Limit[0] }, 2})
		default:
			all = append(all, picture{"control-step.svg", "answers a second; half the speed for 40 s", r.simulated, t, names, func(p simulate.Point) float64 { return p.Goodput }, 10})
		}
	}
	return all
}

// palette can be told apart by those who do not see all colours (Okabe and Ito's).
var palette = []charts.Color{
	charts.ColorFromHex("#000000"), charts.ColorFromHex("#009E73"), charts.ColorFromHex("#E69F00"),
	charts.ColorFromHex("#D55E00"), charts.ColorFromHex("#56B4E9"),
}

func (p picture) draw() ([]byte, error) {
	var series [][]float64
	var labels []string
	var names []string
	for _, name := range p.names {
		runs := p.table.runs[cell{p.trial, name}]
		if len(runs) == 0 {
			continue
		}
		names = append(names, name)
		points := runs[0].points
		var values []float64
		labels = labels[:0]
		for i := 0; i+p.mean <= len(points); i += p.mean {
			sum := 0.0
			for _, pt := range points[i : i+p.mean] {
				sum += p.of(pt) / float64(p.mean)
			}
			values = append(values, sum)
			labels = append(labels, strconv.FormatFloat(points[i].From, 'f', 0, 64)+" s")
		}
		series = append(series, values)
	}
	opt := charts.NewLineChartOptionWithData(series)
	opt.Theme = charts.GetTheme(charts.ThemeLight).WithSeriesColors(palette)
	opt.Padding = charts.NewBoxEqual(16)
	opt.Title.Text = p.title
	opt.Title.Offset = charts.OffsetLeft
	opt.Legend.SeriesNames = names
	opt.Legend.Offset = charts.OffsetRight
	opt.XAxis.Labels = labels
	opt.XAxis.LabelCount = 7
	opt.XAxis.BoundaryGap = charts.Ptr(false)
	opt.YAxis = []charts.YAxisOption{{Min: charts.Ptr(0.0), ValueFormatter: func(v float64) string { return strconv.FormatFloat(v, 'f', 0, 64) }}}
	opt.Symbol = charts.Symbol{Shape: charts.SymbolNone}
	opt.LineStrokeWidth = 1.4
	whole := charts.NewPainter(charts.PainterOptions{OutputFormat: charts.ChartOutputSVG, Width: 960, Height: 320})
	whole.FilledRect(0, 0, 960, 320, charts.ColorWhite, charts.ColorWhite, 0)
	if err := whole.LineChart(opt); err != nil {
		return nil, fmt.Errorf("%s: %w", p.file, err)
	}
	return whole.Bytes()
}
