package redistest

import (
	"context"
	"runtime"
	"sync"
	"time"

	"example.com/forebay/cluster"
)

var caseChecks = []check{
	{"RC-08 a server that forgot the script is sent it once more", forgottenScript},
	{"RC-10 those who wait cost no connection", waitersCostNothing},
	{"RC-11 exchanges that are given up leave nothing behind", givenUp},
	{"RC-12 a grant to somebody who has gone is not lost", grantToNobody},
	{"RC-13 a key that vanishes between two exchanges", vanishingKey},
	{"RC-14 nothing lent is not nothing there", emptyIsNotNew},
	{"RC-16 garbage in the key is repaired", garbage},
	{"RC-19 a server that is frozen or gone takes no longer than is given", frozenOrGone},
}

func forgottenScript(r *rig) {
	s := Start(r, Config{})
	store := r.open(s.Address())
	m := r.instance(store, "g")
	m.settle()
	for i, step := range []func(){m.want, m.giveBack} {
		known, before := store.Reloads(), s.Counts()
		s.Must("SCRIPT", "FLUSH")
		step()
		m.must()
		if got := store.Reloads() - known; got != 1 {
			r.Errorf("step %d: %d reloads are counted, want 1", i, got)
		}
		if sent := s.Counts().Since(before); sent["evalsha"].Calls != 1 || sent["eval"].Calls != 1 {
			r.Errorf("step %d: the server was sent %v, want one evalsha and one eval", i, sent)
		}
		if want := 1 - i; m.held() != want || m.last.Held != want {
			r.Errorf("step %d: it holds %d of %d, want %d", i, m.held(), m.last.Held, want)
		}
	}
	s.Kill()
	s.Restart()
	known := store.Reloads()
	m.soon()
	if got := store.Reloads() - known; got != 1 {
		r.Errorf("after a restart %d reloads are counted, want 1", got)
	}
	before := s.Counts()
	m.must()
	if sent := s.Counts().Since(before); sent["evalsha"].Calls != 1 || sent["eval"].Calls != 0 {
		r.Errorf("an exchange is %v, want one evalsha", sent)
	}
}

func waitersCostNothing(r *rig) {
	const waiters = 200
	s := Start(r, Config{})
	store := r.open(s.Address())
	holder := r.instance(store, "g")
	holder.settle()
	holder.want()
	holder.must()
	holder.want()
	holder.must()
	var wg sync.WaitGroup
	for range waiters {
		wg.Go(func() {
			m := r.instance(store, "g")
			m.want()
			if err := m.tell(budget); err != nil {
				r.Errorf("Exchange: %v", err)
			}
		})
	}
	wg.Wait()
	before := s.Counts()
	if n := s.Connections(); n > r.Opener.Connections {
		r.Errorf("%d wait, and the server has %d connections, want at most %d", waiters, n, r.Opener.Connections)
	}
	holder.giveBack()
	if got := holder.must(); got.Held != 2 {
		r.Errorf("given back while %d wait: %v, want it lent to the next", waiters, got)
	}
	if sent := s.Counts().Since(before); sent["evalsha"].Calls != 1 {
		r.Errorf("to give back took %v, want one evalsha", sent)
	}
}

func givenUp(r *rig) {
	s := Start(r, Config{})
	store := r.open(s.Address())
	m := r.instance(store, "g")
	m.must()
	goroutines := runtime.NumGoroutine()
	for round := range 3 {
		s.Freeze()
		var wg sync.WaitGroup
		for i := range 30 {
			wg.Go(func() {
				ctx, stop := context.WithTimeout(r.Context(), short)
				if i%2 == 0 {
					ctx, stop = context.WithCancel(r.Context())
					go func() { <-time.After(short); stop() }()
				}
				defer stop()
				req := r.instance(store, "g").next
				if _, err := store.Exchange(ctx, &req); err == nil {
					r.Errorf("round %d: an exchange with a frozen server went well", round)
				}
			})
		}
		wg.Wait()
		s.Thaw()
		m.soon()
	}
	until(r, "an end of goroutines of exchanges that were given up", func() bool { return runtime.NumGoroutine() <= goroutines+4 })
	until(r, "an end of their connections", func() bool { return s.Connections() <= r.Opener.Connections })
}

func grantToNobody(r *rig) {
	s := Start(r, Config{})
	store := r.open(s.Address())
	a, b, c := r.instance(store, "g"), r.instance(store, "g"), r.instance(store, "g")
	a.settle()
	for _, m := range []*instance{a, a, b, c} {
		m.want()
		m.must()
	}
	s.Must("CLIENT", "KILL", "TYPE", "normal")
	s.Must("CLIENT", "KILL", "TYPE", "pubsub")
	a.giveBack()
	a.soon() // lent to b, which hears nothing of it
	if b.soon(); b.held() != 1 {
		r.Errorf("whoever missed its grant holds %d, want 1: %v", b.held(), b.last)
	}
	// b is gone now. Its unit is c's as soon as its lease is over.
	c.next.Standing = []cluster.Span{{First: 1, Last: 1}}
	until(r, "the unit of an instance that is gone", func() bool {
		a.must()
		c.must()
		return c.held() == 1
	})
	if c.last.Reclaimed != 1 || c.last.Held != 2 {
		r.Errorf("reclaimed are %d, and lent %d, want 1 and 2", c.last.Reclaimed, c.last.Held)
	}
}

func vanishingKey(r *rig) {
	s := Start(r, Config{})
	store := r.open(s.Address())
	m := r.instance(store, "g")
	m.settle()
	for range 2 {
		m.want()
		m.must()
	}
	for i := range 30 {
		if i%2 == 0 {
			s.Must("DEL", m.next.Key)
		} else {
			s.Must("PEXPIRE", m.next.Key, "0")
		}
		if got := m.must(); m.held() != 2 || got.Held != 2 || got.Lost != 0 {
			r.Fatalf("after the key was lost it holds %d of %d, %d lost; want its 2", m.held(), got.Held, got.Lost)
		}
		if left, _ := s.Must("PTTL", m.next.Key).(int64); left <= 0 {
			r.Fatalf("the key lives for %d ms more, want an end", left)
		}
	}
}

func emptyIsNotNew(r *rig) {
	s := Start(r, Config{})
	a := r.instance(r.open(s.Address()), "g")
	a.settle()
	a.want()
	a.must()
	a.giveBack()
	a.must()
	b := r.instance(r.open(s.Address()), "g")
	for range 2 {
		b.want()
		b.must()
	}
	a.want()
	a.must()
	if b.last.Epoch != a.last.Epoch || b.held() != 2 || a.held() != 0 || a.last.Held != 2 {
		r.Errorf("one that started when nothing was lent holds %d in epoch %d, the other %d in %d; want 2 and 0 in the same",
			b.held(), b.last.Epoch, a.held(), a.last.Epoch)
	}
}

func garbage(r *rig) {
	s := Start(r, Config{})
	store := r.open(s.Address())
	m := r.instance(store, "g")
	m.settle()
	m.want()
	m.must()
	key := m.next.Key
	spoil := [][]string{{"SET", key, "garbage"}, {"RPUSH", key, "3", "2", "1"}, {"HSET", key, "limit", "-5"}}
	fields, _ := s.Must("HKEYS", key).([]any)
	for _, f := range fields {
		for _, value := range []string{"", "0", "-1", "garbage", "9 9 9"} {
			spoil = append(spoil, []string{"HSET", key, f.(string), value})
		}
	}
	for _, command := range spoil {
		if command[0] != "HSET" {
			s.Must("DEL", key)
		}
		s.Must(command...)
		if got := m.must(); got.Limit != 2 || got.Held > 2 || got.Held < 0 {
			r.Errorf("after %q: a limit of %d, %d lent; want 2, and at most 2", command, got.Limit, got.Held)
		}
	}
	for _, f := range fields {
		m.textForNumber(s, f.(string))
	}
	m.settle()
	m.next.Arrived, m.next.Standing, m.next.Waiting = nil, nil, 0
	n := m.held()
	m.want()
	if m.must(); m.held() != n+1 {
		r.Errorf("at the end it holds %d, want %d: %v", m.held(), n+1, m.last)
	}
}

// textForNumber puts an empty text for each number of a packed field, one at a time: it
// has as many parts as before, and cannot be reckoned with.
func (m *instance) textForNumber(s *Server, field string) {
	for i := 0; ; i++ {
		value, _ := s.Must("HGET", m.next.Key, field).(string)
		if i >= len(value) {
			return
		}
		s.Must("HSET", m.next.Key, field, value[:i]+"\xa0"+value[i+1:])
		m.want()
		for range 2 {
			if got := m.must(); got.Limit != 2 || got.Held > 2 || got.Held < 0 {
				m.Errorf("after a text at byte %d of %q in %s: a limit of %d, %d lent; want 2, and at most 2", i, value, field, got.Limit, got.Held)
			}
		}
	}
}

func frozenOrGone(r *rig) {
	s := Start(r, Config{})
	store := r.open(s.Address())
	m := r.instance(store, "g")
	m.must()
	s.Freeze()
	for range 3 {
		m.away(m.tell(short), s.Addr(), "not answered in the time")
	}
	s.Thaw()
	m.soon()
	s.Kill()
	for range 3 {
		m.away(m.tell(budget), s.Addr())
	}
	s.Restart()
	m.soon()
}
