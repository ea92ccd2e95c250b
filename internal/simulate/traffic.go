package simulate

import (
	"hash/fnv"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
)

// crowd is a client in a run: it makes calls, and sees those leave that nobody answers.
type crowd struct {
	Client
	sim     *sim
	route   *route
	keys    []string   // of its callers
	fate    *rand.Rand // what its calls bring along
	mood    *rand.Rand // what it does about refusals
	comes   *event
	traced  *event
	leaves  *event
	again   *event
	mean    float64 // rate × steps
	step    int
	high    bool    // in a burst
	turns   instant // when a burst begins or ends
	trace   int
	callers leavers
	retries heap
	tally   clientTally
}

func newCrowd(s *sim, c Client, r *route) *crowd {
	h := fnv.New64a()
	h.Write([]byte(c.Name))
	w := &crowd{Client: c, sim: s, route: r, mean: c.Arrivals.Rate, turns: never}
	w.fate = rand.New(rand.NewPCG(s.sc.Seed, h.Sum64()))
	w.tally.sim = s
	w.mood = rand.New(rand.NewPCG(s.sc.Seed+1, h.Sum64()))
	for i := range c.Callers {
		w.keys = append(w.keys, c.Name+"/"+strconv.Itoa(i))
	}
	w.comes, w.traced = s.agenda.add(w.come), s.agenda.add(w.comeTraced)
	w.leaves, w.again = s.agenda.add(w.leave), s.agenda.add(w.retry)
	if b := c.Arrivals.Bursts; b.Mean > 0 {
		turn := s.agenda.add(nil)
		turn.fire = func() { w.turn(turn) }
		s.agenda.set(turn, 0)
	}
	if len(c.Arrivals.Steps) > 0 {
		step := s.agenda.add(nil)
		step.fire = func() { w.stepOn(step) }
		s.agenda.set(step, instant(c.Arrivals.Steps[0].At))
	}
	w.plan()
	w.planTrace()
	return w
}

// plan says when the next calls come. A Poisson process has no memory, so it is drawn
// anew whenever the rate changes.
func (w *crowd) plan() {
	a := w.Arrivals
	rate := w.mean / float64(max(1, a.Batch))
	switch {
	case a.Bursts.Mean <= 0:
	case w.high:
		rate *= a.Bursts.High
	default:
		rate *= a.Bursts.Low
	}
	if rate <= 0 {
		w.sim.agenda.set(w.comes, never)
		return
	}
	distance := 1 / rate
	if !a.Even {
		distance *= w.fate.ExpFloat64()
	}
	w.sim.agenda.set(w.comes, w.sim.after(distance))
}

func (w *crowd) come() {
	w.plan()
	for range max(1, w.Arrivals.Batch) {
		w.call()
	}
}

func (w *crowd) turn(e *event) {
	w.high = !w.high
	w.sim.agenda.set(e, w.sim.after(w.fate.ExpFloat64()*w.Arrivals.Bursts.Mean.Seconds()))
	w.plan()
}

func (w *crowd) stepOn(e *event) {
	steps := w.Arrivals.Steps
	w.mean = w.Arrivals.Rate * steps[w.step].Times
	next := never
	if w.step++; w.step < len(steps) {
		next = instant(steps[w.step].At)
	}
	w.sim.agenda.set(e, next)
	w.plan()
}

func (w *crowd) planTrace() {
	next := never
	if w.trace < len(w.Arrivals.Times) {
		next = instant(w.Arrivals.Times[w.trace])
	}
	w.sim.agenda.set(w.traced, next)
}

func (w *crowd) comeTraced() {
	w.trace++
	w.planTrace()
	w.call()
}

// call makes a new call with all that it brings along.
func (w *crowd) call() {
	s := w.sim
	c := s.newCall()
	c.crowd, c.route, c.born = w, w.route, s.now
	for _, v := range w.route.Work {
		c.work = append(c.work, v.Takes.Draw(w.fate))
	}
	if len(s.instances) > 1 {
		c.home = w.fate.IntN(len(s.instances))
	}
	if len(w.keys) > 0 {
		c.caller = w.keys[w.fate.IntN(len(w.keys))]
	}
	s.born(c)
	w.attempt(c)
}

// attempt sends a call, for the first time or again.
func (w *crowd) attempt(c *call) {
	c.asked, c.tries, c.over = w.sim.now, c.tries+1, false
	c.leavesAt = never
	if w.Deadline > 0 {
		c.leavesAt = w.sim.now + instant(w.Deadline)
		w.callers.push(leaver{c.leavesAt, c, c.number, c.tries})
		w.planLeave()
	}
	w.sim.points.tries++
	w.sim.arrive(c)
}

// leavers are calls by the time at which their callers leave. That is the order in which
// they came, as each caller of a crowd has the same patience.
type leavers struct {
	of   []leaver
	from int
}

type leaver struct {
	at     instant
	call   *call
	number uint64 // or the call is another by now
	tries  int
}

func (l *leavers) push(x leaver) {
	if l.from > 1024 && l.from > len(l.of)/2 {
		l.of = slices.Delete(l.of, 0, l.from)
		l.from = 0
	}
	l.of = append(l.of, x)
}

// over reports whether nobody has to look for this one any more.
func (l leaver) over() bool {
	return l.call.number != l.number || l.call.tries != l.tries || l.call.over
}

func (w *crowd) planLeave() {
	l := &w.callers
	for l.from < len(l.of) && l.of[l.from].over() {
		l.from++
	}
	next := never
	if l.from < len(l.of) {
		next = l.of[l.from].at
	}
	w.sim.agenda.set(w.leaves, next)
}

func (w *crowd) leave() {
	l := w.callers.of[w.callers.from]
	w.callers.from++
	if !l.over() {
		w.sim.gone(l.call)
	}
	w.planLeave()
}

// unanswered decides what a caller does without an answer: it comes again after a while,
// or gives up. told is the Retry-After in seconds, 0 if there was none.
func (w *crowd) unanswered(c *call, told int) {
	r := w.Retries
	if c.tries > r.Max {
		w.tally.givenUp(c)
		w.sim.free(c)
		return
	}
	factor := r.Factor
	if factor == 0 {
		factor = 2
	}
	pause := r.Backoff.Seconds() * math.Pow(factor, float64(c.tries-1))
	if r.Honours && told > 0 {
		pause = float64(told)
	} else {
		pause *= 1 - r.Jitter*w.mood.Float64()
	}
	c.key = float64(w.sim.after(pause))
	w.retries.push(&c.entry)
	w.planRetry()
}

func (w *crowd) planRetry() {
	next := never
	if len(w.retries) > 0 {
		next = instant(w.retries.first().key)
	}
	w.sim.agenda.set(w.again, next)
}

func (w *crowd) retry() {
	c := w.retries.first().call
	w.retries.remove(&c.entry)
	w.planRetry()
	w.attempt(c)
}
