package forebaytest

import (
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
)

// verdict is a testing.TB that keeps what a check says about a system instead of
// failing the test. Clean-ups are those of the test around it.
type verdict struct {
	testing.TB

	mu      sync.Mutex // guards what follows
	faults  []string
	skipped bool
}

func (v *verdict) report(text string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.faults = append(v.faults, text)
}

func (v *verdict) Helper()                      {}
func (v *verdict) Logf(string, ...any)          {}
func (v *verdict) Error(args ...any)            { v.report(fmt.Sprint(args...)) }
func (v *verdict) Errorf(f string, args ...any) { v.report(fmt.Sprintf(f, args...)) }
func (v *verdict) Fatalf(f string, args ...any) { v.Errorf(f, args...); runtime.Goexit() }
func (v *verdict) Skip(...any)                  { v.skipped = true; runtime.Goexit() }

func (v *verdict) Failed() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return len(v.faults) > 0
}

// examine runs one check in a bubble and returns what it found.
func examine(t *testing.T, c check, open Opener) *verdict {
	t.Helper()
	var v *verdict
	synctest.Test(t, func(t *testing.T) {
		v = &verdict{TB: t}
		done := make(chan struct{})
		go func() { // a goroutine of its own, which Fatalf ends
			defer close(done)
			c.run(v, open)
		}()
		<-done
	})
	return v
}

// broken says for each check which faults of the rival it has to find.
var broken = map[string][]string{
	"QU-05 a burst never exceeds the limit":                        {"admits everybody", "checks first and counts later", "counts refusals twice"},
	"QU-17 no patience refuses at once":                            {"waits without patience", "refuses late"},
	"QU-06 cost counts":                                            {"counts requests, not cost", "lets the light pass the heavy"},
	"QU-03 a heavy caller that leaves unblocks the light ones":     {"sleeps when the head leaves"},
	"SL-14 streams that are reset keep what they run on":           {"gives the slot of a reset stream away", "runs work for the departed"},
	"QU-11 the line is bounded in length":                          {"keeps a line without end"},
	"QU-11 patience counts from arrival":                           {"waits twice as long", "serves the last first"},
	"QU-12 first in, first out":                                    {"serves the last first"},
	"QU-01 a wait that times out takes no slot with it":            {"loses a slot with each wait in vain"},
	"QU-02 who left in line never runs":                            {"runs work for the departed"},
	"QU-03 who leaves the line frees the place at once":            {"keeps the place of who left"},
	"SL-13 callers that leave at any moment lose no slot":          {"loses a slot with each caller that leaves", "runs work for the departed"},
	"SL-13 work goes on with its slot when its caller leaves":      {"gives the slot of a reset stream away"},
	"SL-01 an aborted answer gives its slot back":                  {"keeps the slot of an aborted answer"},
	"SL-02 an abort ends the connection and adds nothing":          {"makes a crash of an abort"},
	"SL-15 a panic gives its slot back":                            {"keeps the slot of a panic"},
	"SL-10 a flush reaches the client":                             {"holds answers back"},
	"QU-19 a refusal is a complete answer":                         {"hangs up without an answer", "answers in HTML", "lets refusals be cached", "sends a fraction", "tells nobody when to come back"},
	"RJ-05 every reason that waiting cures has a Retry-After":      {"tells nobody when to come back", "tells only some when to come back"},
	"RJ-04 Retry-After is whole seconds within its bounds":         {"sends a fraction", "ignores the bounds"},
	"RJ-06 Retry-After is spread":                                  {"sends everybody back at once"},
	"RJ-09 429 when configured":                                    {"knows 503 only"},
	"RJ-05 what never fits is 413 without Retry-After":             {"tells the hopeless to come back"},
	"RJ-13 HEAD then GET on one connection while full":             {"sends a body to HEAD"},
	"RJ-14 problem details for those who ask":                      {"knows no problem details", "sends browsers JSON"},
	"RJ-08 preflights pass a full gate":                            {"gates preflights", "gates no OPTIONS"},
	"the request id is repeated if harmless":                       {"repeats no id"},
	"the request id is replaced if harmful":                        {"repeats every id"},
	"QU-10 a closed gate refuses at once":                          {"lets one through though closed"},
	"QU-09 a limit below what is in use starts nobody":             {"starts one for each that ends", "sleeps when the limit grows"},
	"a drain answers the line at once and lets the running finish": {"lets the line wait while it drains", "does not wait for the running", "keeps connections while it drains"},
	"a drain that runs out of time still drains":                   {"admits while it drains", "does not wait for the running"},
}

// TestRival shows that the suite asks for behaviour, not for our code.
func TestRival(t *testing.T) { Conformance(t, openRival("")) }

// TestBroken shows that each check can fail: it finds what is wrong with systems
// that break just the promise it is about.
func TestBroken(t *testing.T) {
	for _, c := range checks() {
		if len(broken[c.name]) == 0 {
			t.Errorf("no broken system shows that the check %q can fail", c.name)
		}
		for _, fault := range broken[c.name] {
			t.Run(c.name+"/"+fault, func(t *testing.T) {
				v := examine(t, c, openRival(fault))
				if !v.Failed() {
					t.Errorf("the check passes a gate that %s", fault)
				}
				for _, f := range v.faults[:min(3, len(v.faults))] {
					t.Logf("found: %s", f)
				}
			})
		}
	}
	for name := range broken {
		if !slices.ContainsFunc(checks(), func(c check) bool { return c.name == name }) {
			t.Errorf("there is no check %q", name)
		}
	}
}
