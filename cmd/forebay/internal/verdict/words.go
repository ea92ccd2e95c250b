package verdict

import (
	"fmt"
	"math"
	"strings"
	"time"
)

// Verdict is what is wrong with a gate.
type Verdict struct {
	Gate    string `json:"gate"`
	Verdict string `json:"verdict"` // one of Kinds
	Text    string `json:"text"`    // what is seen, in numbers
	Remedy  string `json:"remedy"`
	// Limit is the limit that the remedy names. 0: it names none.
	Limit int `json:"limit,omitempty"`
	// Seconds is for how long it is known.
	Seconds int `json:"seconds"`
}

// verdicts returns what is up, in words.
func (h *History) verdicts(gate string) (all []Verdict) {
	up := h.at(0).up
	for k := range kindCount {
		if up&k.bit() == 0 {
			continue
		}
		v := Verdict{Gate: gate, Verdict: k.String(), Seconds: h.since(k.bit())}
		h.explain(&v, k)
		all = append(all, v)
	}
	return all
}

// since is for how many seconds something is up, as far back as every second is kept.
func (h *History) since(of kinds) (seconds int) {
	for seconds < min(h.n, fineLen) && h.at(seconds).up&of != 0 {
		seconds++
	}
	return seconds
}

// evidence is what verdicts are told with.
type evidence struct {
	Sample
	alone   Level
	known   bool
	carries int // calls at once that get as much done
}

func (h *History) evidence() evidence {
	e := evidence{Sample: h.over(lately)}
	if e.alone, e.known = h.levels.alone(e.InFlight); e.known {
		e.carries = int(max(1, math.Ceil(1.1*e.perSecond(e.Ended)*float64(e.alone.Held/e.alone.N))))
	}
	return e
}

func (e *evidence) perSecond(n uint32) float64 { return float64(n) / float64(max(1, e.Seconds)) }

// explain adds what is seen and what to do.
func (h *History) explain(v *Verdict, k Kind) {
	e := h.evidence()
	switch k {
	case LeakSuspected:
		v.Text = fmt.Sprintf("%d of %d slots are held far longer than calls of their routes take, the oldest for %s, while others end as ever", e.Stale, e.Limit, span(e.Oldest))
		v.Remedy = "look at /holders for their routes: what they wait for never comes. Give the upstream or the route a time limit, restart what hangs. Slots are never taken from calls that run"
	case RetryStorm:
		v.Text = fmt.Sprintf("%s of those who come were told to come later, %s", share(e.Early, e.Arrived()), e.refused())
		v.Remedy = "make the callers heed Retry-After, with a random part; bound each with per_caller. A higher limit feeds the storm"
	case SlowReaders:
		v.Text = fmt.Sprintf("%d of %d slots are held by calls whose clients do not read their answers, %s", e.Blocked, e.Limit, e.refused())
		v.Remedy = "set hold: upstream_done for the gate, so that answers are taken in for slow clients, or bound them by timeouts.write"
	case TooLax:
		v.Limit = e.carries
		v.Text = fmt.Sprintf("%s, and the processor is busy at %s: too many at once share it", e.slower(), percent(e.CPU))
		v.Remedy = fmt.Sprintf("lower max_in_flight from %d to %d: so many at once get as much done, and each sooner", e.Limit, v.Limit)
	case Elsewhere:
		h.explainElsewhere(v, &e)
	case TooStrict:
		v.Limit = e.wanted()
		v.Text = fmt.Sprintf("%s, while calls take as long as ever, %s, and the processor is %s: what is behind has room", e.refused(), span(e.Held/float32(e.Ended)), e.cpu())
		v.Remedy = fmt.Sprintf("raise max_in_flight from %d to %d, and look again", e.Limit, v.Limit)
	case FastLane:
		v.Text = fmt.Sprintf("%s of the calls of fast lanes have to wait or are refused, though %d units are kept for them", share(e.FastLate, e.Fast), e.Reserved)
		v.Remedy = "look whether more of them come, and keep more for them, or whether they take longer, and find what they wait for"
	}
}

func (h *History) explainElsewhere(v *Verdict, e *evidence) {
	if !e.known || e.Ended == 0 {
		v.Text = fmt.Sprintf("%d of %d slots are held, the oldest for %s, and no call ends: what is behind the gate hangs", e.InFlight, e.Limit, span(e.Oldest))
		v.Remedy = "look at what the upstream waits for, and restart it if it does not come back"
		return
	}
	v.Limit = e.carries
	v.Text = fmt.Sprintf("%s, while the processor is %s: they wait for a pool, a lock or another service, %s", e.slower(), e.cpu(), e.refused())
	v.Remedy = fmt.Sprintf("find what they wait for; a pool of about %d would look like this. Until it is larger, lower max_in_flight from %d to %d: as much gets done, and each call sooner", e.carries, e.Limit, v.Limit)
}

// wanted is the limit that would carry what comes, doubled at most.
func (e *evidence) wanted() int {
	took := float64(e.Held / float32(e.Ended))
	n := int(math.Ceil(1.25 * e.perSecond(e.Arrived()) * took))
	return min(max(n, int(e.Limit)+1), 2*int(e.Limit))
}

func (e *evidence) slower() string {
	times := timesAs(&e.Sample, e.alone)
	return fmt.Sprintf("calls take %.1f times as long among %d as among few", times, e.InFlight)
}

func (e *evidence) refused() string {
	told := fmt.Sprintf("%s of the calls are refused", share(e.Short, e.Arrived()))
	if e.WaitP95 > 0 {
		told += fmt.Sprintf(", and the slowest twentieth of them waits %s", span(e.WaitP95))
	}
	return told
}

func (e *evidence) cpu() string {
	if e.CPU < 0 {
		return "not known"
	}
	return "at " + percent(e.CPU)
}

func share(n, of uint32) string { return percent(float32(n) / float32(max(1, of))) }

func percent(x float32) string { return strings.TrimSuffix(fmt.Sprintf("%.0f", 100*x), ".") + " %" }

func span(seconds float32) string {
	d := time.Duration(float64(seconds) * float64(time.Second))
	switch {
	case d >= 10*time.Second:
		return d.Round(time.Second).String()
	case d >= 100*time.Millisecond:
		return d.Round(10 * time.Millisecond).String()
	}
	return d.Round(100 * time.Microsecond).String()
}
