package main

import (
	"math"
	"strings"
	"testing"
	"time"

	"example.com/forebay/internal/simulate"
)

// brief makes trials short.
func brief(trials []*trial) []*trial {
	for _, t := range trials {
		t.length, t.warmUp = 2*time.Second, time.Second/2
	}
	return trials
}

func played(t *testing.T, trials []*trial, contenders ...contender) *table {
	t.Helper()
	bubbles = t
	all := jobs(trials, contenders, &plan{seeds: 1})
	if err := play(all, &strings.Builder{}); err != nil {
		t.Fatal(err)
	}
	return newTable(trials, contenders, all)
}

// TestWholeGatesDoWhatIsSimulated: a gate of the library, in real goroutines that wait in
// line, gives the figures of the simulator to the last digit.
func TestWholeGatesDoWhatIsSimulated(t *testing.T) {
	trials := brief(steady([]backend{contended, bimodal50}, []float64{2}))
	simulatedOne, inBubble := played(t, trials, simulated[0]), played(t, trials, real[0])
	for _, tr := range trials {
		for i, l := range tr.looks {
			a, b := simulatedOne.figure(tr, nameOurs, i).mean, inBubble.figure(tr, nameOurs, i).mean
			if a != b {
				t.Errorf("%s, %s: %v simulated, %v of a whole gate", tr.title(), l.name, a, b)
			}
		}
	}
}

func ran(r *simulate.Result) float64 { return float64(r.Clients[0].Accepted) }

// TestEveryModuleIsDriven: each lets calls in, and each that has a limit refuses some.
func TestEveryModuleIsDriven(t *testing.T) {
	trials := brief(steady([]backend{servers50}, []float64{5}))
	trials[0].looks = append(trials[0].looks, look{name: "refused", of: refused}, look{name: "ran", of: ran})
	table := played(t, trials, real...)
	for _, c := range real {
		refused, ran := table.figure(trials[0], c.name, 3).mean, table.figure(trials[0], c.name, 4).mean
		if refused < .3 && c.name != "aegis BBR" || ran == 0 {
			t.Errorf("%s: %.3f is refused at five times the load, %.0f ran", c.name, refused, ran)
		}
	}
}

// TestRerunsAreIdentical, whatever runs beside them.
func TestRerunsAreIdentical(t *testing.T) {
	trials := brief(append(cold([]backend{servers50, pooled, slow}), bursts([]backend{contended}, []float64{1})...))
	a, b := played(t, trials, simulated...), played(t, trials, simulated...)
	for _, tr := range trials {
		for i, l := range tr.looks {
			for _, c := range simulated {
				if x, y := a.figure(tr, c.name, i).mean, b.figure(tr, c.name, i).mean; x != y && !(math.IsNaN(x) && math.IsNaN(y)) {
					t.Errorf("%s, %s, %s: %v, then %v", tr.title(), l.name, c.name, x, y)
				}
			}
		}
	}
}

// TestLinesCanBeMissed: a limiter that keeps to 20 misses those that matter.
func TestLinesCanBeMissed(t *testing.T) {
	stays := simulated[2] // half of the right number
	stays.name = nameOurs
	trials := brief(steady([]backend{servers50}, []float64{1, 2}))
	table := played(t, trials, stays, simulated[1])
	missed := 0
	for _, l := range lines() {
		if !l.met(l.of(table)) {
			missed++
		}
	}
	if missed < 3 {
		t.Errorf("with half of the right number %d pass lines are missed", missed)
	}
}

// TestDocument: it has its parts.
func TestDocument(t *testing.T) {
	trials := brief(steady([]backend{servers50}, []float64{2}))
	r := &report{plan: &plan{name: "test"}, simulated: played(t, trials, simulated...)}
	var b strings.Builder
	r.write(&b, false)
	for _, want := range []string{"# Limits that find themselves", "| S1 at 1.2 x and more, ordinary backends |", "### S1: one load all the time", "| AIMD |"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the document lacks %q", want)
		}
	}
}
