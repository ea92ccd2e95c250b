package cluster

import (
	"fmt"
	"strings"
)

// load reads what the script keeps, as far as it is shown to people.
func load(kept map[string]string) (*Ledger, error) {
	l := &Ledger{members: map[string]*member{}, line: newLine()}
	f := words(kept[settledField])
	if v := f.int(); f.err == nil && v != layout {
		return nil, fmt.Errorf("cluster: the ledger is kept in layout %d, and this program knows %d", v, layout)
	}
	l.epoch, l.identity, l.learn = f.uint(), f.next(), int64(f.int())
	l.cold, l.renewed = cold(f.int()), int64(f.int())
	l.override = override{version: f.uint(), limit: f.int(), until: int64(f.int())}
	l.limit, l.low, l.high = f.int(), f.int(), f.int()
	_, l.withheld, l.nearest, l.reclaimed, l.lostTotal = f.int(), f.int(), int64(f.int()), f.uint(), f.uint()
	if err := f.end(); err != nil {
		return nil, fmt.Errorf("cluster: the ledger has %q in field %s: %w", kept[settledField], settledField, err)
	}
	f = words(kept[movingField])
	l.clock, l.wall, l.top = int64(f.int()), int64(f.int()), f.uint()
	l.held, l.inUse, l.waiting, l.line.queued = f.int(), f.int(), f.int(), f.int()
	l.line.head, l.line.cursor, l.line.tail = int64(f.int()), int64(f.int()), int64(f.int())
	l.fences, l.calm = f.uint(), f.next()
	if err := f.end(); err != nil {
		return nil, fmt.Errorf("cluster: the ledger has %q in field %s: %w", kept[movingField], movingField, err)
	}
	l.names = strings.Fields(kept[namesField])
	for _, name := range l.names {
		m, err := loadMember(kept[memberLetter+name])
		if err != nil {
			return nil, fmt.Errorf("cluster: the ledger has %q for the instance %s: %w", kept[memberLetter+name], name, err)
		}
		m.host = kept[hostLetter+name]
		l.members[name] = m
	}
	return l, nil
}

func loadMember(s string) (*member, error) {
	f := words(s)
	m := &member{
		number: f.uint(), granted: f.uint(), returned: f.uint(), acked: f.uint(),
		inUse: f.int(), waiting: f.int(), oldest: int64(f.int()),
		heard: f.uint(), next: f.uint(), queued: f.int(), last: int64(f.int()), lastCost: f.int(),
		seen: int64(f.int()), lease: int64(f.int()), limit: f.int(), withhold: int64(f.int()), share: f.int(),
	}
	flags := f.int()
	m.fenced, m.gone, m.passed = flags&flagFenced != 0, flags&flagGone != 0, flags&flagPassed != 0
	f.next() // the calls that stand
	f.next() // the slots
	return m, f.end()
}
