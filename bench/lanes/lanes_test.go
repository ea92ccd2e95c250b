package main

import (
	"strings"
	"testing"
	"time"
)

// TestWhoIsServed is what is asked of lanes, for a few seconds of the scenarios in which
// those that are asked for show at once.
func TestWhoIsServed(t *testing.T) {
	trials := []*trial{priorities("40 % of 2 x", .8, .6, .6), starving(), fair(20), deadlines()}
	for _, tr := range trials {
		tr.scenario.For, tr.scenario.WarmUp = 8*time.Second, 3*time.Second
		if tr.id != "S13" {
			tr.lines = tr.lines[:1] // goodput wants more time
		}
	}
	rows, err := play(trials, 1, &strings.Builder{})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rows {
		if !r.holds() {
			t.Errorf("%s: %s is %.4f", r.trial.title(), r.line.what, r.mean)
		}
	}
	var b strings.Builder
	write(&b, rows, 1)
	if got := strings.Count(b.String(), "| holds |"); got != len(rows) {
		t.Errorf("%d rows hold in\n%s", got, &b)
	}
}

// TestWithoutProtection: the same scenarios without lanes and without fairness are missed,
// so that the test above can fail.
func TestWithoutProtection(t *testing.T) {
	trials := []*trial{priorities("40 % of 2 x", .8, .6, .6), fair(20)}
	for _, tr := range trials {
		tr.scenario.For, tr.scenario.WarmUp = 8*time.Second, 3*time.Second
		tr.lines = tr.lines[:1]
		tr.scenario.Gates[0].Config.Lanes, tr.scenario.Gates[0].Config.Fair = nil, false
	}
	rows, err := play(trials, 1, &strings.Builder{})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rows {
		if r.holds() {
			t.Errorf("%s: %s is %.4f without it", r.trial.title(), r.line.what, r.mean)
		}
	}
}
