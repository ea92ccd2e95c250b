package adaptive

import "math"

// fade is what is left of a memory after some time.
func fade(passed, memory float64) float64 { return math.Exp(-passed / memory) }

// demand measures how much more is asked than is let in.
type demand struct {
	offered, started float64 // a second, over the last second or so
	offerNow, runNow float64 // the same over 0.2 s, in other units
	waited           float64 // the part of the last second in which somebody stood in line
}

func (d *demand) pass(passed float64, waiting bool, arrived uint64) {
	if passed > 0 {
		slow, fast := fade(passed, 1), fade(passed, 0.2)
		d.offered, d.started = d.offered*slow, d.started*slow
		d.offerNow, d.runNow = d.offerNow*fast, d.runNow*fast
		d.waited *= slow
		if waiting {
			d.waited += 1 - slow
		}
	}
	d.offered += float64(arrived)
	d.offerNow += float64(arrived)
}

func (d *demand) begun() { d.started++; d.runNow++ }

// ratio is ρ, offered over started; 1 while hardly anything was offered.
func (d *demand) ratio() float64 {
	if d.offered < 2 {
		return 1
	}
	return d.offered / max(d.started, 1e-9)
}

// sudden is the same over the last 0.2 s.
func (d *demand) sudden() float64 {
	if d.offerNow < 2 {
		return 1
	}
	return d.offerNow / max(d.runNow, 1e-9)
}

// presses reports whether demand stands at the gate: for half of the last second, or all
// at once.
func (d *demand) presses(waiting bool) bool {
	return d.waited >= 0.5 || waiting && d.sudden() >= 2
}

// residence is how long calls take: a mean that forgets with about twice as many calls as
// may run.
type residence struct {
	mean  float64 // seconds
	calls float64
}

func (r *residence) add(seconds float64, limit int) {
	r.calls++
	part := max(1/r.calls, 2/(max(20, 2*float64(limit))+1))
	r.mean += part * (seconds - r.mean)
}

// throughput is how many calls end in a second while the gate is full.
type throughput struct {
	weight, sum float64
	ends        int     // since the gate was not full
	since       float64 // seconds that it has been full
	memory      float64 // seconds
}

func (t *throughput) pass(passed float64, full, idle bool) {
	switch {
	case full:
		t.since += passed
		if passed > 0 && t.memory > 0 {
			f := fade(passed, t.memory)
			t.sum *= f
			t.weight = t.weight*f + 1 - f
		}
	case idle:
		t.since = 0
	}
}

func (t *throughput) ended(memory float64) {
	if t.since <= 0 {
		*t = throughput{memory: memory}
		return
	}
	t.memory = memory
	t.sum += 1 / memory
	t.ends++
}

// perSecond returns it, and false while too little was seen.
func (t *throughput) perSecond() (float64, bool) {
	if t.ends < 20 || t.weight < 0.3 {
		return 0, false
	}
	return t.sum / t.weight, true
}
