package forebaytest

import (
	"fmt"
	"maps"
	"sync"
	"time"

	"example.com/forebay/cluster"
)

// ledgers is the server behind the stores in memory.
type ledgers struct {
	mu     sync.Mutex // guards what follows
	watch  stopwatch
	byKey  map[string]*cluster.Ledger
	subs   map[*subscription]bool
	steps  int
	frozen []func() // nil: it is not
	isOff  bool

	wall   time.Time // at since
	since  time.Duration
	speed  float64
	began  time.Duration
	server int // how many there were before
	hidden bool

	lag     time.Duration // of the replica; 0: none
	replica map[string]*cluster.Ledger
	behind  []entry
}

// entry is a step that the replica has not made yet.
type entry struct {
	at      time.Duration
	server  cluster.Server
	request cluster.Request
}

func newLedgers() *ledgers {
	l := &ledgers{
		watch: startWatch(), byKey: map[string]*cluster.Ledger{}, subs: map[*subscription]bool{}, speed: 1,
		began: -24 * time.Hour,
	}
	l.wall = l.watch.start
	return l
}

func (l *ledgers) nowLocked() time.Time {
	return l.wall.Add(time.Duration(float64(l.watch.elapsed()-l.since) * l.speed))
}

// exchange has a ledger make a step as soon as the server runs. answered is told the
// reply; pushes are sent first, as a script's are.
func (l *ledgers) exchange(r cluster.Request, answered func(cluster.Reply)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	step := func() { answered(l.stepLocked(&r)) }
	if l.isOff {
		l.frozen = append(l.frozen, step)
		return
	}
	step()
}

func (l *ledgers) stepLocked(r *cluster.Request) cluster.Reply {
	l.steps++
	server := l.serverLocked()
	if l.lag > 0 {
		l.behind = append(l.behind, entry{l.watch.elapsed(), server, *r})
		l.followLocked()
	}
	rep, messages := ledgerOf(l.byKey, r.Key).Exchange(server, r)
	for _, m := range messages {
		for sub := range l.subs {
			sub.publish(m)
		}
	}
	return rep
}

func ledgerOf(byKey map[string]*cluster.Ledger, key string) *cluster.Ledger {
	if byKey[key] == nil {
		byKey[key] = &cluster.Ledger{}
	}
	return byKey[key]
}

// serverLocked is what a ledger learns of its server now.
func (l *ledgers) serverLocked() cluster.Server {
	heard := map[string]int{}
	for sub := range l.subs {
		for name := range sub.channels {
			heard[name]++
		}
	}
	s := cluster.Server{
		Wall: l.nowLocked(), Identity: fmt.Sprintf("server%d", l.server), Uptime: l.watch.elapsed() - l.began,
		Subscribers: func(channel string) int { return heard[channel] },
	}
	if l.hidden {
		s.Identity, s.Uptime = "", -1
	}
	return s
}

func (l *ledgers) state(key string) cluster.State {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.byKey[key] == nil {
		return cluster.State{}
	}
	return l.byKey[key].State()
}

func (l *ledgers) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.steps
}

func (l *ledgers) wipe(restart bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.byKey = map[string]*cluster.Ledger{}
	if restart {
		l.anotherLocked()
	}
}

// anotherLocked makes the server another one.
func (l *ledgers) anotherLocked() {
	l.server++
	l.began = l.watch.elapsed()
	l.frozen, l.isOff = nil, false
	for sub := range l.subs {
		sub.end()
	}
}

func (l *ledgers) freeze() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.isOff = true
}

func (l *ledgers) thaw() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.isOff = false
	for _, step := range l.frozen {
		step()
	}
	l.frozen = nil
}

func (l *ledgers) jump(d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.wall = l.wall.Add(d)
}

func (l *ledgers) drift(speed float64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.wall, l.since = l.nowLocked(), l.watch.elapsed()
	l.speed = speed
}

func (l *ledgers) hide() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.hidden = true
}

func (l *ledgers) replicate(lag time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lag, l.replica = lag, map[string]*cluster.Ledger{}
}

// followLocked has the replica make the steps that it has heard of by now.
func (l *ledgers) followLocked() {
	for len(l.behind) > 0 && l.behind[0].at+l.lag <= l.watch.elapsed() {
		e := l.behind[0]
		l.behind = l.behind[1:]
		ledgerOf(l.replica, e.request.Key).Exchange(e.server, &e.request)
	}
}

func (l *ledgers) failover() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.followLocked()
	l.byKey, l.behind = l.replica, nil
	if l.byKey == nil {
		l.byKey = map[string]*cluster.Ledger{}
	}
	l.replica = map[string]*cluster.Ledger{}
	l.anotherLocked()
}

func (l *ledgers) add(sub *subscription) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.subs[sub] = true
}

func (l *ledgers) remove(sub *subscription) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.subs, sub)
}

// end ends the subscriptions that are meant.
func (l *ledgers) end(meant func(*subscription) bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for sub := range maps.Keys(l.subs) {
		if meant(sub) {
			sub.end()
		}
	}
}
