package admit

import (
	"bytes"
	"fmt"
	"strings"
	"time"
)

// A journal writes down everything that a machine is told and what it answers,
// as a script that [Play] plays again: a bug report that runs.
type journal struct {
	out      *bytes.Buffer
	start    time.Time
	arrivals int32
	wants    []int   // what the limiter wanted during this event
	told     *Waiter // the last of the decided whom an event has told of
}

// Record makes the machine write a script of everything that it is told from now
// on into out, with times counted from start. It must be new. While it records it
// does not lend its counting.
func (m *Machine) Record(out *bytes.Buffer, start time.Time) {
	m.journal = &journal{out: out, start: start}
	if m.cfg.Limiter != nil {
		m.journal.wants = append(m.journal.wants, m.want) // what it wanted when it was asked first
	}
	m.note(start, "new", m.cfg.script())
}

func (c Config) script() string {
	var b strings.Builder
	fmt.Fprintf(&b, "limit=%d wait=%v line=%d", c.Limit, c.MaxWait, c.MaxWaiting)
	if c.Measure {
		b.WriteString(" measure")
	}
	if c.Limiter != nil {
		b.WriteString(" limiter")
	}
	if c.PerCaller > 0 {
		fmt.Fprintf(&b, " each=%d callers=%d", c.PerCaller, c.MaxCallers)
	}
	if c.Ledger {
		b.WriteString(" ledger")
	}
	return b.String()
}

func (m *Machine) noteArrival(now time.Time, a Arrival, v Verdict, w *Waiter) {
	if m.journal == nil {
		return
	}
	m.journal.arrivals++
	if w != nil {
		w.id = m.journal.arrivals
	}
	args := fmt.Sprint(m.journal.arrivals)
	if a.Cost != 1 {
		args += fmt.Sprintf(" cost=%d", a.Cost)
	}
	if !a.Deadline.IsZero() {
		args += fmt.Sprintf(" deadline=%v", a.Deadline.Sub(m.journal.start))
	}
	if !a.Until.IsZero() {
		args += fmt.Sprintf(" until=%v", a.Until.Sub(m.journal.start))
	}
	if a.Caller != nil {
		args += " caller=" + a.Caller.text()
	}
	if a.NoWait {
		args += " try"
	}
	if a.Link {
		args += " link"
	}
	m.write(now, "arrive", args, append([]string{v.String()}, m.tellDecided()...))
}

func (m *Machine) note(now time.Time, verb, args string) {
	if m.journal != nil {
		m.write(now, verb, args, m.tellDecided())
	}
}

func (m *Machine) noteAnswer(now time.Time, verb, args, answer string, n int) {
	if m.journal != nil {
		m.write(now, verb, args, append([]string{fmt.Sprint(answer, " ", n)}, m.tellDecided()...))
	}
}

func (m *Machine) noteUnwind(now time.Time, verb string, cost int, c *Caller) {
	if m.journal == nil {
		return
	}
	args := fmt.Sprintf("cost=%d", cost)
	if c != nil {
		args += " caller=" + c.text()
	}
	m.note(now, verb, args)
}

func (m *Machine) noteRelease(now time.Time, cost int, end End) {
	if m.journal == nil {
		return
	}
	args := fmt.Sprintf("cost=%d", cost)
	if end.Caller != nil {
		args += " caller=" + end.Caller.text()
	}
	if end.Held != 0 {
		args += fmt.Sprintf(" held=%v", end.Held)
	}
	if end.Outcome != Done {
		args += fmt.Sprintf(" outcome=%d", end.Outcome)
	}
	m.note(now, "release", args)
}

func (m *Machine) noteWaiter(now time.Time, verb string, w *Waiter, v Verdict) {
	if m.journal == nil {
		return
	}
	args := fmt.Sprint(w.id)
	if v != Canceled {
		args += " " + v.String()
	}
	m.note(now, verb, args)
}

func (m *Machine) write(now time.Time, verb, args string, answers []string) {
	j := m.journal
	fmt.Fprintf(j.out, "%v %s", now.Sub(j.start), verb)
	if args != "" {
		j.out.WriteString(" " + args)
	}
	for i, want := range j.wants {
		sep := ","
		if i == 0 {
			sep = " wants="
		}
		fmt.Fprintf(j.out, "%s%d", sep, want)
	}
	j.wants = j.wants[:0]
	fmt.Fprintf(j.out, " -> %s\n", answer(answers))
}

func answer(parts []string) string {
	if len(parts) == 0 {
		return "ok"
	}
	return strings.Join(parts, ", ")
}

// tellDecided words what the event did to those in line. An event before it may have
// decided others whom nobody has asked for yet.
func (m *Machine) tellDecided() []string {
	from := m.decided
	if m.journal.told != nil {
		from = m.journal.told.next
	}
	m.journal.told = m.decidedLast
	return tell(from, func(w *Waiter) string { return fmt.Sprint(w.id) })
}

func tell(w *Waiter, name func(*Waiter) string) []string {
	var told []string
	for ; w != nil; w = w.next {
		told = append(told, fmt.Sprintf("%s %v after %v", name(w), w.verdict, w.waited))
	}
	return told
}
