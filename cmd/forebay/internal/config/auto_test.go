package config

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestAuto: a limit that finds itself, with its defaults filled in, from a file and from a
// flag; written out it means the same.
func TestAuto(t *testing.T) {
	for text, want := range map[string]Auto{
		"auto":       {Min: 1, Max: 1000, Start: 20, Deadline: time.Second},
		"{auto: {}}": {Min: 1, Max: 1000, Start: 20, Deadline: time.Second},
		"{auto: {min: 4, max: 200, deadline: 2s}}": {Min: 4, Max: 200, Start: 20, Deadline: 2 * time.Second},
		"{auto: {max: 8}}":                         {Min: 1, Max: 8, Start: 8, Deadline: time.Second},
		"{auto: {min: 30}}":                        {Min: 30, Max: 1000, Start: 30, Deadline: time.Second},
		"{auto: {min: 5000}}":                      {Min: 5000, Max: 5000, Start: 5000, Deadline: time.Second},
		"{auto: {start: 5, max: 5, min: 5}}":       {Min: 5, Max: 5, Start: 5, Deadline: time.Second},
	} {
		c := mustParse(t, strings.Replace(small, "4}", text+"}", 1))
		g := c.Gates[0]
		if g.Auto == nil || *g.Auto != want || g.MaxInFlight != want.Start || g.Closed {
			t.Errorf("%s: %+v, MaxInFlight %d, want %+v", text, g.Auto, g.MaxInFlight, want)
			continue
		}
		again := mustParse(t, c.YAML())
		if a := again.Gates[0].Auto; a == nil || *a != want {
			t.Errorf("%s, written out and read: %+v", text, a)
		}
	}
	c, err := FromFlags(Flags{Upstream: "http://127.0.0.1:8000", MaxInFlight: "auto"})
	if err != nil || c.Gates[0].Auto == nil || c.Gates[0].MaxInFlight != 20 {
		t.Errorf("--max-in-flight auto: %v, %+v", err, c)
	}
	if g := mustParse(t, small).Gates[0]; g.Auto != nil {
		t.Errorf("a number moves by %+v", g.Auto)
	}
}

// TestAutoHasPlaces: check and reload can say where its keys stand.
func TestAutoHasPlaces(t *testing.T) {
	c := mustParse(t, strings.Replace(small, "4}", "{auto: {max: 200, deadline: 1s}}}", 1))
	for key, want := range map[string]string{
		"gates.a.max_in_flight": "2:28", "gates.a.max_in_flight.auto.max": "2:41", "gates.a.max_in_flight.auto.deadline": "2:56", "gates.a.max_in_flight.auto.min": "0:0",
	} {
		if at := c.At(key); fmt.Sprintf("%d:%d", at.Line, at.Col) != want {
			t.Errorf("%s stands at %v, want %s", key, at, want)
		}
	}
}
