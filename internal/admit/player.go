package admit

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Play runs a script and writes it to out with the answers that the machine
// gives now: the same text again if nothing has changed. A script has one event
// a line,
//
//	TIME VERB [ARGUMENTS] -> ANSWER
//
// with comments after #. TIME counts from the start of the script. The verbs are
// new, arrive, release, unwind, due, leave, disown, limit, configure, drain, resume,
// count and state, and those of a machine with a ledger; testdata shows each.
func Play(script io.Reader, out io.Writer) error {
	p := &player{start: time.Unix(0, 0).UTC(), names: map[string]*Waiter{}, gone: map[string]*Lane{}}
	in := bufio.NewScanner(script)
	for n := 1; in.Scan(); n++ {
		line := in.Text()
		event, _, _ := strings.Cut(line, "->")
		event = strings.TrimSpace(event)
		if event == "" || strings.HasPrefix(event, "#") {
			fmt.Fprintln(out, line)
			continue
		}
		answers, err := p.play(strings.Fields(event))
		if err != nil {
			return fmt.Errorf("admit: script line %d: %q: %w", n, line, err)
		}
		fmt.Fprintf(out, "%s -> %s\n", event, answer(answers))
	}
	return in.Err()
}

type player struct {
	start time.Time
	m     *Machine
	names map[string]*Waiter
	order []string // the names, by the waiters' ids
	tape  *tape
	gone  map[string]*Lane
}

// tape answers for a limiter what it answered when the script was written.
type tape struct{ wants []int }

// Observe returns the next recorded wish, and the limit in force when the
// script holds none.
func (t *tape) Observe(o *Observation) int {
	if len(t.wants) == 0 {
		return o.Limit
	}
	want := t.wants[0]
	t.wants = t.wants[1:]
	return want
}

// args are an event's words after the verb: bare ones, and key=value.
type args struct {
	bare   []string
	values map[string]string
	err    error
}

func parseArgs(words []string) *args {
	a := &args{values: map[string]string{}}
	for _, w := range words {
		if k, v, ok := strings.Cut(w, "="); ok {
			a.values[k] = v
		} else {
			a.bare = append(a.bare, w)
		}
	}
	return a
}

func (a *args) has(word string) bool { return slices.Contains(a.bare, word) }

func (a *args) first() string {
	if len(a.bare) == 0 {
		a.err = fmt.Errorf("an argument is missing")
		return ""
	}
	return a.bare[0]
}

func (a *args) number(s string, absent int) int {
	if s == "" {
		return absent
	}
	n, err := strconv.Atoi(s)
	if err != nil {
		a.err = err
	}
	return n
}

// lanes reads what scriptLanes writes.
func (a *args) lanes() (lanes []LaneConfig) {
	if a.values["lanes"] == "" {
		return nil
	}
	for word := range strings.SplitSeq(a.values["lanes"], ",") {
		f := append(strings.Split(word, "/"), "", "", "", "")
		lanes = append(lanes, LaneConfig{
			Name: f[0], Rank: a.number(f[1], 1), Reserved: a.number(f[2], 0), Share: a.fraction(f[3]), MaxShare: a.fraction(f[4]),
		})
	}
	return lanes
}

func (a *args) fraction(s string) float64 {
	if s == "" {
		return 0
	}
	x, err := strconv.ParseFloat(s, 64)
	if err != nil {
		a.err = err
	}
	return x
}

func (a *args) duration(key string) time.Duration {
	s := a.values[key]
	if s == "" {
		return 0
	}
	d, err := time.ParseDuration(s)
	if err != nil {
		a.err = err
	}
	return d
}

func (a *args) moment(key string, start time.Time) time.Time {
	if a.values[key] == "" {
		return time.Time{}
	}
	return start.Add(a.duration(key))
}

func (p *player) play(words []string) ([]string, error) {
	after, err := time.ParseDuration(words[0])
	if err != nil || len(words) < 2 {
		return nil, fmt.Errorf("an event is TIME VERB [ARGUMENTS]")
	}
	now, verb, a := p.start.Add(after), words[1], parseArgs(words[2:])
	if p.m == nil && verb != "new" {
		return nil, fmt.Errorf("the first event must be new")
	}
	if a.values["wants"] != "" {
		if p.tape == nil {
			p.tape = &tape{}
		}
		for _, w := range strings.Split(a.values["wants"], ",") {
			p.tape.wants = append(p.tape.wants, a.number(w, 0))
		}
	}
	told := p.apply(now, verb, a)
	if a.err != nil {
		return nil, a.err
	}
	told = append(told, tell(p.m.decided, func(w *Waiter) string { return p.order[w.id] })...)
	p.m.Decided()
	return told, nil
}

func (p *player) apply(now time.Time, verb string, a *args) []string {
	switch verb {
	case "new":
		p.m = New(now, p.config(a))
	case "configure":
		c := p.config(a)
		p.m.Configure(now, c, a.number(a.values["now"], c.Limit))
	case "arrive":
		return p.arrive(now, a)
	case "release":
		p.m.Release(now, p.claim(a), End{Held: a.duration("held"), Outcome: Outcome(a.number(a.values["outcome"], 0))})
	case "unwind":
		p.m.Unwind(now, p.claim(a))
	case "due":
		p.m.ExpireDue(now)
	case "leave", "disown":
		p.quit(now, verb, a)
	case "limit":
		p.m.SetLimit(now, a.number(a.first(), 0))
	case "drain":
		p.m.Drain(now)
	case "resume":
		p.m.Resume(now)
	case "count":
		p.count(now, a.first(), a)
	case "state":
		return p.state()
	default:
		return p.tellLedger(now, verb, a)
	}
	return nil
}

// tellLedger plays what an outer ledger says.
func (p *player) tellLedger(now time.Time, verb string, a *args) []string {
	switch verb {
	case "feed":
		p.m.Feed(now, a.number(a.first(), 0))
	case "take":
		return []string{fmt.Sprintf("took %d", p.m.Take(now, a.number(a.first(), 0)))}
	case "return":
		p.m.Return(now, a.first() == "on")
	case "fetch":
		return []string{fmt.Sprintf("fetched %d", p.m.Fetch(now))}
	case "answered":
		p.m.Answered(now, uint64(a.number(a.first(), 0)))
	case "renumber":
		p.m.Renumber(now)
	case "expire":
		p.m.Expire(now)
	case "renew":
		p.m.Renew(now)
	case "lapse":
		p.m.Lapse(now)
	case "alone":
		p.m.Alone(now, a.number(a.values["slots"], 0), a.has("refuse"))
	case "together":
		p.m.Together(now)
	case "retract":
		p.m.Retract(now, p.claim(a))
	default:
		a.err = fmt.Errorf("unknown verb %q", verb)
	}
	return nil
}

func (p *player) config(a *args) Config {
	c := Config{
		Limit: a.number(a.values["limit"], 1), MaxWait: a.duration("wait"),
		MaxWaiting: a.number(a.values["line"], 0), Measure: a.has("measure"),
		PerCaller: a.number(a.values["each"], 0), MaxCallers: a.number(a.values["callers"], math.MaxInt),
		Ledger: a.has("ledger"), Fair: a.has("fair"), Lanes: a.lanes(),
	}
	if a.has("limiter") {
		if p.tape == nil {
			p.tape = &tape{}
		}
		c.Limiter = p.tape
	}
	return c
}

// caller returns who is meant; nil if nobody is named.
func (p *player) caller(a *args) *Caller {
	switch name := a.values["caller"]; name {
	case "":
		return nil
	case "shared":
		return &p.m.callers.shared
	default:
		return p.m.Caller(name)
	}
}

func (p *player) claim(a *args) Claim {
	c := Claim{Cost: a.number(a.values["cost"], 1), Caller: p.caller(a)}
	if name := a.values["lane"]; name != "" {
		if c.Lane = p.m.Lane(name); c.Lane == nil {
			c.Lane = p.gone[name]
		}
		p.gone[name] = c.Lane // for when it is no more
	}
	return c
}

func (p *player) arrive(now time.Time, a *args) []string {
	call := Arrival{
		Claim:    p.claim(a),
		Deadline: a.moment("deadline", p.start), Until: a.moment("until", p.start),
		NoWait: a.has("try"), Link: a.has("link"),
	}
	if a.values["caller"] == "shared" { // as it was called when it found no place
		p.m.callers.beyond++
	}
	v := p.m.Arrive(now, call)
	if v == Queued {
		w := &Waiter{id: int32(len(p.order))}
		p.names[a.first()] = w
		p.order = append(p.order, a.first())
		p.m.Join(now, call, w)
	}
	return []string{v.String()}
}

func (p *player) count(now time.Time, verdict string, a *args) {
	v := slices.Index(verdictNames[:], verdict)
	if v < 0 {
		a.err = fmt.Errorf("unknown verdict %q", verdict)
		return
	}
	p.m.Count(now, Verdict(v))
}

func (p *player) quit(now time.Time, verb string, a *args) {
	w := p.names[a.first()]
	if w == nil {
		a.err = fmt.Errorf("nobody of that name has waited")
		return
	}
	v := Canceled
	for _, other := range []Verdict{Deadline, Store} {
		if a.has(other.String()) {
			v = other
		}
	}
	switch verb {
	case "leave":
		p.m.Leave(now, w, v)
	case "disown":
		p.m.Disown(now, w, v)
	}
}

func (p *player) state() []string {
	m, c := p.m, p.m.counts
	told := []string{fmt.Sprintf("in flight %d of %d in %d calls", m.inFlight, m.limit, m.calls)}
	told = append(told, fmt.Sprintf("waiting %d of %d", m.line.len, m.MaxWaiting()))
	if m.cfg.Ledger {
		told = append(told, fmt.Sprintf("lent %d", m.ledger.lent), fmt.Sprintf("back %d", m.ledger.back))
	}
	if m.cfg.PerCaller > 0 {
		known, beyond := m.Callers()
		told = append(told, fmt.Sprintf("callers %d", known), fmt.Sprintf("beyond %d", beyond))
	}
	for _, l := range m.Lanes() {
		if l.Name != "" {
			told = append(told, fmt.Sprintf("%s %d and %d", l.Name, l.InFlight, l.Waiting))
		}
	}
	for v, n := range c.Decisions {
		if n > 0 {
			told = append(told, fmt.Sprintf("%v %d", Verdict(v), n))
		}
	}
	return append(told, fmt.Sprintf("leases %d - %d", c.Granted, c.Released))
}
