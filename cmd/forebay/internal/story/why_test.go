package story

import (
	"strings"
	"testing"
	"time"

	"example.com/forebay"
)

// The words say which number stood in the way.
func TestWhy(t *testing.T) {
	r := &rules{maxWait: 100 * time.Millisecond, maxWaiting: 8, maxCaller: 2, maxCost: 4}
	atOnce, short := &rules{}, &rules{maxWait: 100 * time.Millisecond}
	for want, p := range map[string]page{
		"all 4 slots were taken and the line was full: 8 of 8 waited": {decision: forebay.RejectedBusy, rules: r, limit: 4, inFlight: 4, cost: 1, waiting: 8},
		"all 4 slots were taken, and the gate lets nobody wait":       {decision: forebay.RejectedBusy, rules: atOnce, limit: 4, inFlight: 4, cost: 1},
		"3 calls were in line before it: at the pace at which slots came free it had a chance below 5 % to get one within 100ms, or the line had stood for so long that it is kept short": {decision: forebay.RejectedBusy, rules: short, limit: 4, inFlight: 4, cost: 1, waiting: 3},
		"9 calls were in line before it: at the pace":                    {decision: forebay.RejectedBusy, rules: short, limit: 4, inFlight: 4, cost: 1, waiting: 9},
		"it takes 3 units, and of 4 only 2 were free, and the gate lets": {decision: forebay.RejectedBusy, rules: atOnce, limit: 4, inFlight: 2, cost: 3},
		"the gate is closed: its limit is 0":                             {decision: forebay.RejectedBusy, rules: r, cost: 1},
		"others were in line before it, or its slot was not yet lent":    {decision: forebay.RejectedBusy, rules: r, limit: 4, inFlight: 3, cost: 1, waiting: 1},
		"it waited 100ms, which is its whole patience":                   {decision: forebay.RejectedTimeout, rules: r, waited: 100 * time.Millisecond},
		"1 call was still in line when it left":                          {decision: forebay.RejectedTimeout, rules: r, waiting: 1},
		"its own deadline passed after 50ms in line":                     {decision: forebay.RejectedDeadline, waited: 50 * time.Millisecond},
		"(per_caller.max_in_flight: 2)":                                  {decision: forebay.RejectedCaller, rules: r},
		"as much of the gate as one may have":                            {decision: forebay.RejectedCaller},
		"it takes 9 units, and the gate never has more than 4":           {decision: forebay.RejectedTooLarge, rules: r, limit: 2, cost: 9},
		"the gate is draining":                                           {decision: forebay.RejectedDraining},
		"its store is away or did not answer in time":                    {decision: forebay.RejectedStore},
		"the caller left after 20ms in line":                             {decision: forebay.Canceled, waited: 20 * time.Millisecond},
		"it ran after 1.25s in line, as one of 3 of 4 in flight":         {decision: forebay.Accepted, waited: 1251 * time.Millisecond, inFlight: 3, limit: 4},
		"it ran at once, as one of 3 of 4 in flight":                     {decision: forebay.Accepted, inFlight: 3, limit: 4},
		"its route is exempt":                                            {decision: forebay.Exempted},
	} {
		if got := p.why(); !strings.Contains(got, want) {
			t.Errorf("%v: %q, want %q in it", p.decision, got, want)
		}
	}
}

func TestWhyRetry(t *testing.T) {
	computed, fixed := &rules{}, &rules{retry: forebay.RetryAfter{Fixed: time.Second}}
	bounded := &rules{retry: forebay.RetryAfter{Min: 5 * time.Second, Max: 9 * time.Second}}
	for want, p := range map[string]page{
		"": {decision: forebay.Accepted, status: 200},
		"none is sent: trying again does not help":              {decision: forebay.RejectedTooLarge, status: 413},
		"the answer is not known yet":                           {decision: forebay.RejectedBusy},
		"none was sent":                                         {decision: forebay.RejectedBusy, status: 503},
		"as the gate's rules were":                              {decision: forebay.RejectedBusy, status: 503, retry: 1},
		"it is set to just that":                                {decision: forebay.RejectedBusy, status: 503, retry: 1, rules: fixed},
		"do not come back together; 1 s at least, 30 s at most": {decision: forebay.RejectedBusy, status: 503, retry: 1, rules: computed},
		"5 s at least, 9 s at most. 8 calls were in line, and 2.5 calls a second ended lately": {decision: forebay.RejectedBusy, status: 503, retry: 7, rules: bounded, waiting: 8, rate: 2.5},
		"5 s at least, 9 s at most": {decision: forebay.RejectedBusy, status: 503, retry: 7, rules: bounded},
	} {
		got := p.whyRetry()
		if !strings.Contains(got, want) || want == "" && got != "" {
			t.Errorf("%v: %q, want %q", p.decision, got, want)
		}
	}
}
