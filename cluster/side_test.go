package cluster

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

// dice decide what happens in a history: a seeded source, or the bytes of a fuzz input.
type dice interface {
	// IntN returns a number below n.
	IntN(n int) int
}

// tape is dice that a fuzzer throws; when they are used up, all are 0.
type tape struct{ rest []byte }

func (t *tape) IntN(n int) int {
	v := 0
	for bound := 1; bound < n && len(t.rest) > 0; bound <<= 8 {
		v, t.rest = v<<8|int(t.rest[0]), t.rest[1:]
	}
	return v % n
}

// chance is one in n.
func chance(d dice, n int) bool { return d.IntN(n) == n-1 }

// Side is the ledger somewhere else than in Go, to which the same happens.
type Side interface {
	// Exchange takes a step; facts is for the script, in place of what the server says.
	Exchange(facts string, r *Request) (Reply, []Message)
	// Fields returns all that is kept.
	Fields() map[string]string
	// Wipe deletes it; Spoil makes it unreadable, in one of several ways.
	Wipe()
	Spoil(way int)
	// CopyOf remembers what is kept; the function returned puts it back.
	CopyOf() (restore func())
}

// facts are what the ledger learns of its server, as a test wants it.
type facts struct {
	wall       time.Duration // since 1970
	identity   string
	uptime     time.Duration // below 0: not known
	subscribed []string      // instances
	blind      bool          // who is subscribed is not known
}

func (f facts) server(key string) Server {
	s := Server{Wall: time.Unix(0, 0).Add(f.wall), Identity: f.identity, Uptime: f.uptime}
	if f.blind {
		return s
	}
	s.Subscribers = func(channel string) int {
		if channel == key {
			return len(f.subscribed)
		}
		if slices.Contains(f.subscribed, strings.TrimPrefix(channel, key+":")) {
			return 1
		}
		return 0
	}
	return s
}

// String returns the facts as the script takes them in place of the server's.
func (f facts) String() string {
	subscribed := strings.Join(f.subscribed, " ")
	if f.blind {
		subscribed = "?"
	}
	return fmt.Sprintf("%d|%s|%d|%s", f.wall.Milliseconds(), f.identity, max(-1, f.uptime.Milliseconds()), subscribed)
}

// twins are the ledger in Go and, if there is one, the other side. The same happens to both, must come out the same, and must be consistent after every step.
type twins struct {
	t      testing.TB
	key    string
	l      Ledger
	other  Side // nil: the model alone
	checks checks
	steps  int
}

func (w *twins) exchange(f facts, r *Request) (Reply, []Message) {
	w.t.Helper()
	w.steps++
	before := w.checks.before(&w.l, r)
	reply, told := w.l.Exchange(f.server(r.Key), r)
	if wrong := w.checks.after(before, &w.l, r, &reply); wrong != "" {
		w.t.Fatalf("%s, in step %d, after %+v, %v\nreply %+v\n%s", wrong, w.steps, *r, f, reply, dump(w.l.Fields()))
	}
	if w.other == nil {
		return reply, told
	}
	again, alsoTold := w.other.Exchange(f.String(), r)
	mine, its := w.l.Fields(), w.other.Fields()
	if !reflect.DeepEqual(reply, again) || !slices.Equal(told, alsoTold) || !maps.Equal(mine, its) {
		w.t.Fatalf("step %d, after %+v, %v:\nmodel %+v\nredis %+v\nmodel %v\nredis %v\n%s",
			w.steps, *r, f, reply, again, told, alsoTold, difference(mine, its))
	}
	return reply, told
}

func (w *twins) wipe() {
	w.l = Ledger{}
	if w.other != nil {
		w.other.Wipe()
	}
}

// spoil makes what is kept unreadable, in one of several ways.
func (w *twins) spoil(way int) {
	if w.l.epoch == 0 {
		return
	}
	w.l.Spoil()
	if w.other != nil {
		w.other.Spoil(way)
	}
}

// copyOf remembers the state as it is; the function returned puts it back.
func (w *twins) copyOf() (restore func()) {
	l, put := w.l.copyOf(), func() {}
	if w.other != nil {
		put = w.other.CopyOf()
	}
	return func() {
		w.l = l.copyOf()
		put()
	}
}

func (l *Ledger) copyOf() Ledger {
	c := *l
	c.names, c.used = slices.Clone(l.names), slices.Clone(l.used)
	c.members, c.line.tickets = map[string]*member{}, maps.Clone(l.line.tickets)
	for name, m := range l.members {
		d := *m
		d.spans, d.slots = slices.Clone(m.spans), slices.Clone(m.slots)
		c.members[name] = &d
	}
	return c
}

// difference returns what is kept differently.
func difference(model, redis map[string]string) string {
	var s strings.Builder
	all := maps.Clone(model)
	maps.Copy(all, redis)
	for _, k := range slices.Sorted(maps.Keys(all)) {
		if model[k] != redis[k] {
			fmt.Fprintf(&s, "%s\n  model %s\n  redis %s\n", k, shown(k, model[k]), shown(k, redis[k]))
		}
	}
	return s.String()
}

func dump(kept map[string]string) string {
	var s strings.Builder
	for _, k := range slices.Sorted(maps.Keys(kept)) {
		fmt.Fprintf(&s, "%s %s\n", k, shown(k, kept[k]))
	}
	return s.String()
}

// shown returns a field as a person can read it.
func shown(field, value string) string {
	if value == "" || strings.Contains("nuh", field[:1]) {
		return value
	}
	return fmt.Sprint(unpacked(value))
}

// unpacked reads packed values without knowing what they are.
func unpacked(s string) (values []any) {
	u := unpack(s)
	for u.rest != "" && u.err == nil {
		values = append(values, u.any())
	}
	return values
}

func (u *unpacker) any() any {
	switch kind := u.rest[0]; {
	case kind&0xe0 == 0xa0, kind >= 0xd9 && kind <= 0xdb:
		return u.str()
	case kind&0xf0 == 0x90, kind == 0xdc, kind == 0xdd:
		all := make([]any, u.list())
		for i := range all {
			all[i] = u.any()
		}
		return all
	}
	return u.int64()
}
