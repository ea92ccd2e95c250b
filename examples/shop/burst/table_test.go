package burst

import (
	"strings"
	"testing"
	"time"
)

const ms = time.Millisecond

func TestTable(t *testing.T) {
	before := Result{Duration: 10 * time.Second, Classes: []Outcome{
		{Name: "orders", Deadline: 2 * time.Second, Sent: 990, Unsent: 10, InTime: 3, Late: 980, Failed: 7,
			Answers: Quantiles{P50: 2 * time.Second, P99: 2 * time.Second}},
	}}
	after := Result{Duration: 10 * time.Second, Classes: []Outcome{
		{Name: "orders", Deadline: 2 * time.Second, Sent: 1000, InTime: 999, Refused: 1, CameBack: 1, CameBackInTime: 1,
			Answers: Quantiles{P50: 4200 * time.Microsecond, P99: 123 * ms}, Refusals: Quantiles{P50: ms, P99: 1500 * ms}},
	}}
	var b strings.Builder
	if err := Table(&b, Column{"without", before}, Column{"with", after}); err != nil {
		t.Fatal(err)
	}
	want := `
                                without       with

orders  calls                   1000          1000
        answered in time        3 (1 %)       999 (99 %)
        p50, p99                > 2 s, > 2 s  4.2 ms, 123 ms
        gave up waiting         980           -
        refused                 -             1
        refused within p50, p99 -             1.0 ms, 1.5 s
        failed                  7             -
        not sent                10            -

all     goodput                 0 a second    100 a second
        Retry-After honoured    -             1 came back, 1 answered
`
	if got := "\n" + b.String(); squeeze(got) != squeeze(want) {
		t.Errorf("got%s\nwant%s", got, want)
	}
	columns := -1 // where the second result starts, in every line that has one
	for line := range strings.Lines(b.String()) {
		for _, cell := range []string{"with\n", "1000\n", "999 (", "4.2 ms", "100 a", "1 came"} {
			if i := strings.LastIndex(line, cell); i >= 0 && columns >= 0 && i != columns {
				t.Errorf("%q starts at %d, others at %d", cell, i, columns)
			} else if i >= 0 {
				columns = i
			}
		}
	}
}

// squeeze leaves one space between words.
func squeeze(s string) string {
	lines := strings.Split(s, "\n")
	for i, l := range lines {
		lines[i] = strings.Join(strings.Fields(l), " ")
	}
	return strings.Join(lines, "\n")
}

func TestPercentTellsAllFromNearlyAll(t *testing.T) {
	for _, c := range []struct {
		n, of int
		want  string
	}{{0, 0, "-"}, {0, 9, "0 %"}, {9, 9, "100 %"}, {999, 1000, "99 %"}, {1, 1000, "1 %"}, {1, 2, "50 %"}, {18, 1000, "2 %"}} {
		if got := percent(c.n, c.of); got != c.want {
			t.Errorf("percent(%d, %d) = %q, want %q", c.n, c.of, got, c.want)
		}
	}
}

func TestQuantilesAreNearestRank(t *testing.T) {
	var times []time.Duration
	for i := 200; i > 0; i-- {
		times = append(times, time.Duration(i))
	}
	if got := quantiles(times); got != (Quantiles{P50: 100, P95: 190, P99: 198}) {
		t.Errorf("%+v", got)
	}
	if got := quantiles([]time.Duration{5}); got != (Quantiles{5, 5, 5}) {
		t.Errorf("of one: %+v", got)
	}
}

func TestOutcomeOfNothing(t *testing.T) {
	if got := (Result{Duration: time.Second}).Class("x"); got.Share() != 0 || got.Name != "x" {
		t.Errorf("%+v", got)
	}
	if err := Table(&strings.Builder{}); err != nil {
		t.Error(err)
	}
}
