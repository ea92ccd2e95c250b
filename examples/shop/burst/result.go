package burst

import (
	"slices"
	"sync"
	"time"
)

// Result is what became of the calls of a run.
type Result struct {
	Duration time.Duration // as in the plan
	Classes  []Outcome     // in the order of the plan
}

// Outcome is what became of the calls of one class. Each call that arrived ended in
// one of InTime, Late, Refused, Failed and Unsent, by its first attempt; Sent is the
// sum of the first four, once all have ended.
type Outcome struct {
	Name     string
	Deadline time.Duration

	Sent    int
	InTime  int // answered within the deadline
	Late    int // no whole answer by then; the caller has left
	Refused int // 503 or 429 with a Retry-After
	Failed  int // anything else: another error status, a broken connection
	Unsent  int // all connections of the generator were taken

	CameBack       int // refused calls that were sent again after their Retry-After
	CameBackInTime int // those of them that were answered within the deadline

	// Answers are the times of the calls InTime and Late; a late one counts with
	// the deadline, so that waiting in vain does not make the numbers better.
	Answers Quantiles
	// Refusals are the times until the refusals came.
	Refusals Quantiles

	// Failure is what happened to the first that Failed.
	Failure string
}

// Quantiles are of times, all 0 when there were none.
type Quantiles struct {
	P50, P95, P99 time.Duration
}

// Arrived is how many calls there were.
func (o Outcome) Arrived() int { return o.Sent + o.Unsent }

// Share is the part of the calls that was answered in time, 0 to 1.
func (o Outcome) Share() float64 {
	if o.Arrived() == 0 {
		return 0
	}
	return float64(o.InTime) / float64(o.Arrived())
}

// Class returns the outcome of a class, a zero one when there is none of the name.
func (r Result) Class(name string) Outcome {
	for _, c := range r.Classes {
		if c.Name == name {
			return c
		}
	}
	return Outcome{Name: name}
}

// Goodput is how many calls a second were answered in time, of all classes.
func (r Result) Goodput() float64 {
	n := 0
	for _, c := range r.Classes {
		n += c.InTime
	}
	return float64(n) / r.Duration.Seconds()
}

// tally counts. It is safe for concurrent use.
type tally struct {
	duration time.Duration

	mu      sync.Mutex // guards what follows
	classes []class
}

type class struct {
	Outcome
	answers, refusals []time.Duration
}

func newTally(p Plan) *tally {
	t := &tally{duration: p.Duration}
	for _, c := range p.Classes {
		t.classes = append(t.classes, class{Outcome: Outcome{Name: c.Name, Deadline: c.Deadline}})
	}
	return t
}

// count changes the outcome of a call's class by its first attempt, or by its
// second.
func (t *tally) count(a arrival, first, again func(*class)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := &t.classes[a.class]
	if a.again {
		c.CameBack++
		again(c)
		return
	}
	c.Sent++
	first(c)
}

func nothing(*class) {}

func (t *tally) inTime(a arrival, took time.Duration) {
	t.count(a, func(c *class) {
		c.InTime++
		c.answers = append(c.answers, took)
	}, func(c *class) { c.CameBackInTime++ })
}

func (t *tally) late(a arrival) {
	t.count(a, func(c *class) {
		c.Late++
		c.answers = append(c.answers, c.Deadline)
	}, nothing)
}

func (t *tally) refused(a arrival, took time.Duration) {
	refusal := func(c *class) { c.refusals = append(c.refusals, took) }
	t.count(a, func(c *class) {
		c.Refused++
		refusal(c)
	}, refusal)
}

func (t *tally) failed(a arrival, why string) {
	t.count(a, func(c *class) {
		c.Failed++
		if c.Failure == "" {
			c.Failure = why
		}
	}, nothing)
}

func (t *tally) unsent(a arrival) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !a.again { // one that cannot come back has been counted as refused
		t.classes[a.class].Unsent++
	}
}

// counts returns the outcomes without the times.
func (t *tally) counts() []Outcome {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := make([]Outcome, len(t.classes))
	for i, c := range t.classes {
		out[i] = c.Outcome
	}
	return out
}

func (t *tally) result() Result {
	r := Result{Duration: t.duration, Classes: t.counts()}
	t.mu.Lock()
	defer t.mu.Unlock()
	for i, c := range t.classes {
		r.Classes[i].Answers, r.Classes[i].Refusals = quantiles(c.answers), quantiles(c.refusals)
	}
	return r
}

func quantiles(times []time.Duration) Quantiles {
	if len(times) == 0 {
		return Quantiles{}
	}
	slices.Sort(times)
	at := func(percent int) time.Duration { return times[(len(times)*percent+99)/100-1] } // nearest rank
	return Quantiles{P50: at(50), P95: at(95), P99: at(99)}
}
