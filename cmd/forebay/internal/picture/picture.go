// Package picture draws what became of a scenario.
package picture

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/go-analyze/charts"

	"example.com/forebay/internal/simulate"
)

const (
	width  = 1100 // pixels
	height = 300  // of one chart
)

// Formats are the endings of files that [Draw] can make.
var Formats = []string{charts.ChartOutputSVG, charts.ChartOutputPNG}

// Draw returns the picture of a result over time, as one of [Formats]: calls a second,
// then of each gate its limit, what runs and who waits, then the wait.
func Draw(r *simulate.Result, format string) ([]byte, error) {
	all := panels(r)
	whole := charts.NewPainter(charts.PainterOptions{OutputFormat: format, Width: width, Height: height * len(all)})
	whole.FilledRect(0, 0, width, height*len(all), charts.ColorWhite, charts.ColorWhite, 0)
	for i, p := range all {
		at := whole.Child(charts.PainterBoxOption(charts.NewBox(0, i*height, width, (i+1)*height)))
		if err := at.LineChart(p.chart(r.Points)); err != nil {
			return nil, fmt.Errorf("picture: %s: %w", p.title, err)
		}
	}
	return whole.Bytes()
}

// panel is one chart of the picture.
type panel struct {
	title  string
	lines  []string
	values func(p simulate.Point) []float64
}

func panels(r *simulate.Result) []panel {
	all := []panel{{
		"calls a second", []string{"offered", "sent", "could be answered", "answered", "refused"},
		func(p simulate.Point) []float64 {
			return []float64{p.Offered, p.Attempts, p.Ideal, p.Goodput, p.Refused}
		},
	}}
	for i, g := range r.Gates {
		all = append(all, panel{
			"gate " + g.Gate, []string{"limit", "in flight", "waiting"},
			func(p simulate.Point) []float64 { return []float64{p.Limit[i], p.InFlight[i], p.Waiting[i]} },
		})
	}
	return append(all, panel{
		"wait of those who run, 95th percentile, ms", []string{"waited"},
		func(p simulate.Point) []float64 { return []float64{p.Waited * 1000} },
	})
}

// palette can be told apart by those who do not see all colours (Okabe and Ito's).
var palette = []charts.Color{
	charts.ColorFromHex("#000000"), charts.ColorFromHex("#E69F00"), charts.ColorFromHex("#56B4E9"),
	charts.ColorFromHex("#009E73"), charts.ColorFromHex("#D55E00"),
}

func (p panel) chart(points []simulate.Point) charts.LineChartOption {
	series := make([][]float64, len(p.lines))
	var times []string
	for _, pt := range points {
		times = append(times, strconv.FormatFloat(pt.From, 'f', decimals(points), 64)+" s")
		for i, v := range p.values(pt) {
			series[i] = append(series[i], v)
		}
	}
	opt := charts.NewLineChartOptionWithData(series)
	opt.Theme = charts.GetTheme(charts.ThemeLight).WithSeriesColors(palette)
	opt.Padding = charts.NewBoxEqual(16)
	opt.Title.Text = p.title
	opt.Title.Offset = charts.OffsetLeft
	opt.Legend.SeriesNames = p.lines
	opt.Legend.Offset = charts.OffsetRight
	opt.XAxis.Labels = times
	opt.XAxis.LabelCount = 11
	opt.XAxis.BoundaryGap = charts.Ptr(false)
	opt.YAxis = []charts.YAxisOption{{Min: charts.Ptr(0.0), ValueFormatter: plain}}
	opt.Symbol = charts.Symbol{Shape: charts.SymbolNone}
	opt.LineStrokeWidth = 1.6
	return opt
}

// decimals returns how many decimals tell the points' times apart.
func decimals(points []simulate.Point) int {
	if len(points) < 2 || points[1].From-points[0].From >= 1 {
		return 0
	}
	return min(3, len(strings.TrimRight(strconv.FormatFloat(points[1].From-points[0].From, 'f', 3, 64), "0"))-2)
}

// plain writes a number of an axis, with three digits that count.
func plain(v float64) string {
	if v >= 100 {
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return strconv.FormatFloat(v, 'g', 3, 64)
}
