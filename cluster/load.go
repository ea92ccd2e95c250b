package cluster

import (
	"fmt"
	"strings"
)

// load reads what the script keeps, as far as it is shown to people.
func load(kept map[string]string) (*Ledger, error) {
	l := &Ledger{members: map[string]*member{}, line: newLine()}
	u := unpack(kept[settledField])
	if v := u.int(); u.err == nil && v != layout {
		return nil, fmt.Errorf("cluster: the ledger is kept in layout %d, and this program knows %d", v, layout)
	}
	l.epoch, l.identity, l.learn = u.uint(), u.str(), u.int64()
	l.cold, l.renewed = cold(u.int()), u.int64()
	l.override = override{version: u.uint(), limit: u.int(), until: u.int64()}
	l.limit, l.low = u.int(), u.int()
	_, l.withheld, l.nearest, l.reclaimed, l.lostTotal = u.int(), u.int(), u.int64(), u.uint(), u.uint()
	l.origin, l.shares, l.doubt = u.int64(), u.int(), u.int64()
	if err := u.end(); err != nil {
		return nil, unreadable(settledField, kept, err)
	}
	u = unpack(kept[movingField])
	_, l.clock, l.wall, l.top = u.uint(), u.int64(), u.int64(), u.uint()
	l.held, l.inUse, l.waiting, l.line.queued = u.int(), u.int(), u.int(), u.int()
	l.line.head, l.line.cursor, l.line.tail = u.int64(), u.int64(), u.int64()
	l.fences, l.calm = u.uint(), u.str()
	if err := u.end(); err != nil {
		return nil, unreadable(movingField, kept, err)
	}
	l.names = strings.Fields(kept[namesField])
	for _, name := range l.names {
		m, err := loadMember(kept[memberLetter+name])
		if err != nil {
			return nil, unreadable(memberLetter+name, kept, err)
		}
		m.host = kept[hostLetter+name]
		l.members[name] = m
	}
	return l, nil
}

func unreadable(field string, kept map[string]string, err error) error {
	return fmt.Errorf("cluster: the ledger has %q in field %s: %w", kept[field], field, err)
}

func loadMember(s string) (*member, error) {
	u := unpack(s)
	m := &member{
		number: u.uint(), granted: u.uint(), returned: u.uint(), acked: u.uint(), told: u.uint(),
		inUse: u.int(), waiting: u.int(), oldest: u.int64(),
		heard: u.uint(), next: u.uint(), queued: u.int(), last: u.int64(), lastCost: u.int(), passed: u.int64(),
		seen: u.int64(), lease: u.int64(), limit: u.int(), withhold: u.int64(), share: u.int(), contact: u.int64(),
	}
	flags := u.int()
	m.fenced, m.gone = flags&flagFenced != 0, flags&flagGone != 0
	for n := u.list(); n > 1; n -= 2 {
		m.spans = append(m.spans, Span{First: u.uint(), Last: u.uint()})
	}
	for n := u.list(); n > 2; n -= 3 {
		number, grant := u.int(), u.uint()
		fence, err := parseFence(u.str())
		if err != nil {
			return nil, err
		}
		m.slots = append(m.slots, heldSlot{Slot: Slot{Number: number, Fence: fence}, grant: grant})
	}
	return m, u.end()
}
