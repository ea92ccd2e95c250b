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
		fmt.Fprintf(&b, " each=%d", c.PerCaller)
	}
	if c.Fair {
		b.WriteString(" fair")
	}
	if c.PerCaller > 0 || c.Fair {
		fmt.Fprintf(&b, " callers=%d", c.MaxCallers)
	}
	if len(c.Lanes) > 0 {
		b.WriteString(" lanes=" + scriptLanes(c.Lanes))
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
	args += a.Claim.script(1)
	if !a.Deadline.IsZero() {
		args += fmt.Sprintf(" deadline=%v", a.Deadline.Sub(m.journal.start))
	}
	if !a.Until.IsZero() {
		args += fmt.Sprintf(" until=%v", a.Until.Sub(m.journal.start))
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

func (m *Machine) noteClaim(now time.Time, verb string, c Claim) {
	if m.journal != nil {
		m.note(now, verb, c.script(0)[1:])
	}
}

// script words what a call takes, without a cost that goes without saying.
func (c Claim) script(usual int) string {
	var args string
	if c.Cost != usual {
		args += fmt.Sprintf(" cost=%d", c.Cost)
	}
	if c.Caller != nil {
		args += " caller=" + c.Caller.text()
	}
	if c.Lane != nil && c.Lane.Name != "" {
		args += " lane=" + c.Lane.Name
	}
	return args
}

func (m *Machine) noteRelease(now time.Time, c Claim, end End) {
	if m.journal == nil {
		return
	}
	args := c.script(0)[1:]
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
		from = m.journal.told.Next()
	}
	m.journal.told = m.decidedLast
	return tell(from, func(w *Waiter) string { return fmt.Sprint(w.id) })
}

func tell(w *Waiter, name func(*Waiter) string) []string {
	var told []string
	for ; w != nil; w = w.Next() {
		told = append(told, fmt.Sprintf("%s %v after %v", name(w), w.verdict, w.waited))
	}
	return told
}

// scriptLanes words lanes as NAME/RANK/RESERVED/SHARE/MAXSHARE, with commas between.
func scriptLanes(lanes []LaneConfig) string {
	words := make([]string, len(lanes))
	for i, l := range lanes {
		words[i] = fmt.Sprintf("%s/%d/%d/%g/%g", l.Name, l.Rank, l.Reserved, l.Share, l.MaxShare)
	}
	return strings.Join(words, ",")
}
