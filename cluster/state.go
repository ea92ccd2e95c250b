package cluster

import (
	"strconv"
	"strings"
)

// The fields of the hash that the script keeps: what settles and what moves with every
// step; the members' names and the slots that are held; and for each member, host and
// ticket one that begins with its letter.
const (
	settledField = "e"
	movingField  = "m"
	namesField   = "n"
	usedField    = "u"
	memberLetter = "i"
	hostLetter   = "h"
	placeLetter  = "t"
	layout       = 3 // of all that, the first part of the settled field
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
		Held: l.held, Queued: l.line.queued, Learning: fromMillis(max(0, l.learn-l.clock)),
		Reclaimed: l.reclaimed, LostTotal: l.lostTotal,
	}
	for _, name := range l.names {
		m := l.members[name]
		st.Members = append(st.Members, Member{
			ID: name, Host: m.host, Held: m.held(), InUse: m.inUse, Waiting: m.waiting,
			Limit: m.limit, Oldest: fromMillis(m.oldest),
			Seen: fromMillis(l.clock - m.seen), Lease: fromMillis(m.seen + m.lease - l.clock),
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
		kept[memberLetter+name] = m.kept()
		kept[hostLetter+name] = m.host
	}
	for place, t := range l.line.tickets {
		var p packed
		p.str(t.instance)
		p.ints(int64(t.last), int64(t.cost))
		kept[placeLetter+strconv.FormatInt(place, 10)] = string(p)
	}
	return kept
}

func (l *Ledger) settled() string {
	var p packed
	p.ints(layout, int64(l.epoch))
	p.str(l.identity)
	p.ints(l.learn, int64(l.cold), l.renewed,
		int64(l.override.version), int64(l.override.limit), l.override.until,
		int64(l.limit), int64(l.low), int64(len(l.names)), int64(l.withheld),
		l.nearest, int64(l.reclaimed), int64(l.lostTotal), l.origin, int64(l.shares), l.doubt)
	return string(p)
}

func (l *Ledger) moving() string {
	var p packed
	p.ints(int64(l.epoch), l.clock, l.wall, int64(l.top), int64(l.held), int64(l.inUse), int64(l.waiting),
		int64(l.line.queued), l.line.head, l.line.cursor, l.line.tail, int64(l.fences))
	p.str(l.calm)
	return string(p)
}

// The member's flags.
const (
	flagFenced = 1 << iota
	flagGone
)

// kept returns the member as it is kept.
func (m *member) kept() string {
	flags := 0
	for flag, on := range map[int]bool{flagFenced: m.fenced, flagGone: m.gone} {
		if on {
			flags |= flag
		}
	}
	var p packed
	p.ints(int64(m.number), int64(m.granted), int64(m.returned), int64(m.acked), int64(m.told),
		int64(m.inUse), int64(m.waiting), m.oldest,
		int64(m.heard), int64(m.next), int64(m.queued), m.last, int64(m.lastCost), m.passed,
		m.seen, m.lease, int64(m.limit), m.withhold, int64(m.share), m.contact, int64(flags))
	p.list(2 * len(m.spans))
	for _, s := range m.spans {
		p.ints(int64(s.First), int64(s.Last))
	}
	p.list(3 * len(m.slots))
	for _, s := range m.slots {
		p.ints(int64(s.Number), int64(s.grant))
		p.str(fenceText(s.Fence))
	}
	return string(p)
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
