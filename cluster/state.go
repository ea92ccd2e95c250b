package cluster

import (
	"fmt"
	"strconv"
	"strings"
)

// The fields of the hash that the script keeps: two of the ledger itself, of which the
// second changes with nearly every step; the members' names and the slots that are held;
// and for each member, host and ticket one that begins with its letter.
const (
	settledField = "e"
	movingField  = "m"
	namesField   = "n"
	usedField    = "u"
	memberLetter = "i"
	hostLetter   = "h"
	placeLetter  = "t"
	layout       = 1 // of all that, the first word of the settled field
)

// ParseState reads what the script keeps for one gate: all fields of its key. Times in
// it are as of the last exchange.
func ParseState(kept map[string]string) (State, error) {
	if len(kept) == 0 {
		return State{}, nil
	}
	l, err := load(kept)
	if err != nil {
		return State{}, err
	}
	return l.State(), nil
}

// State returns the ledger as it stands, with times as of the last step.
func (l *Ledger) State() State {
	st := State{
		Epoch: l.epoch, Limit: l.limit, Override: l.override.shown(l.wall),
		Held: l.held, Queued: l.line.queued, Learning: toDuration(max(0, l.learn-l.clock)),
		Reclaimed: l.reclaimed, LostTotal: l.lostTotal,
	}
	for _, name := range l.names {
		m := l.members[name]
		st.Members = append(st.Members, Member{
			ID: name, Host: m.host, Held: m.held(), InUse: m.inUse, Waiting: m.waiting,
			Limit: m.limit, Oldest: toDuration(m.oldest),
			Seen: toDuration(l.clock - m.seen), Lease: toDuration(m.seen + m.lease - l.clock),
		})
	}
	return st
}

// Fields returns all that the ledger keeps, as the script keeps it in its hash.
func (l *Ledger) Fields() map[string]string {
	kept := map[string]string{}
	if l.epoch == 0 {
		return kept
	}
	kept[settledField] = l.settled()
	kept[movingField] = l.moving()
	if len(l.names) > 0 {
		kept[namesField] = strings.Join(l.names, " ")
	}
	if len(l.used) > 0 {
		kept[usedField] = bits(l.used)
	}
	for name, m := range l.members {
		kept[memberLetter+name] = m.String()
		kept[hostLetter+name] = m.host
	}
	for place, t := range l.line.tickets {
		kept[placeLetter+strconv.FormatInt(place, 10)] = fmt.Sprintf("%s %d %d", t.instance, t.last, t.cost)
	}
	return kept
}

func (l *Ledger) settled() string {
	return spaced(layout, l.epoch, orDash(l.identity), l.learn, int(l.cold), l.renewed,
		l.override.version, l.override.limit, l.override.until, l.limit, l.low, l.high,
		len(l.names), l.withheld, l.nearest, l.reclaimed, l.lostTotal)
}

func (l *Ledger) moving() string {
	return spaced(l.clock, l.wall, l.top, l.held, l.inUse, l.waiting, l.line.queued,
		l.line.head, l.line.cursor, l.line.tail, l.fences, orDash(l.calm))
}

// The member's flags.
const (
	flagFenced = 1 << iota
	flagGone
	flagPassed
)

// String returns the member as it is kept.
func (m *member) String() string {
	flags := 0
	for flag, on := range map[int]bool{flagFenced: m.fenced, flagGone: m.gone, flagPassed: m.passed} {
		if on {
			flags |= flag
		}
	}
	slots := make([]string, len(m.slots))
	for i, s := range m.slots {
		slots[i] = fmt.Sprintf("%d:%d:%s", s.Number, s.grant, appendFence(nil, s.Fence))
	}
	return spaced(m.number, m.granted, m.returned, m.acked, m.inUse, m.waiting, m.oldest,
		m.heard, m.next, m.queued, m.last, m.lastCost, m.seen, m.lease, m.limit, m.withhold,
		m.share, flags, orDash(string(appendSpans(nil, m.spans))), orDash(strings.Join(slots, ",")))
}

func spaced(values ...any) string { return strings.TrimSuffix(fmt.Sprintln(values...), "\n") }

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

func bits(used []bool) string {
	b := make([]byte, len(used))
	for i, u := range used {
		b[i] = '0'
		if u {
			b[i] = '1'
		}
	}
	return string(b)
}
