//go:build linux

package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// frozenFor is for how long processes are stopped: longer than any lease.
const frozenFor = 5 * time.Second

// killWorker ends a worker that holds slots for long, as a crash does.
func killWorker(st *stage) error {
	st.members[st.victim].kill()
	st.struck = st.members[st.victim].gone
	return nil
}

// longHolder makes one worker hold its slots for so long that it surely has some.
func longHolder(st *stage) {
	st.victim = 1
	st.tweak = func(a *assignment) {
		if a.Worker == st.victim {
			a.Work.Hold, a.Work.Long = 500*time.Millisecond, time.Second
		}
	}
}

// terminateWorker ends a worker as an operator does. It gives back what it has.
func terminateWorker(st *stage) error {
	m := st.members[st.victim]
	st.struck = now()
	if err := m.terminate(); err != nil {
		return err
	}
	<-m.exit
	return m.failed
}

// returnedAtOnce demands that a worker that ended in good order gave its slots back:
// they are in use again before a killed one's could be.
func returnedAtOnce(st *stage, v *verdict) {
	after, ok := fullAgain(st.story.holds, st.sheet.Limit, st.victim, st.struck)
	v.note("slots back after %d ms", after.Milliseconds())
	if !ok || after > time.Second {
		v.fault("the slots of a worker that ended in good order came back after %v", after)
	}
}

// soonAgain demands that a killed worker's slots are granted again in time.
func soonAgain(st *stage, v *verdict) {
	within := 8*st.sheet.Loan.Lease/5 + time.Second
	if st.ours() && (!v.regranted || v.regrant > within) {
		v.fault("the slots of a killed worker were not granted again within %v: %s", within, v.back())
	}
}

func freezeWorker(st *stage) error {
	m := st.members[st.victim]
	if err := m.freeze(); err != nil {
		return err
	}
	time.Sleep(frozenFor)
	return m.thaw()
}

// boundWhileFrozen states what holds without fences: the frozen worker's slots are
// granted again while it still believes in them, so there may be as many more as it
// held, until it has noticed.
func boundWhileFrozen(st *stage, v *verdict) {
	frozen := st.members[st.victim].frozen[0]
	held := heldBy(st.story.holds, st.victim, frozen.from)
	noticed := frozen.to
	for _, h := range st.story.holds {
		if h.worker == st.victim && h.holds(frozen.from) {
			noticed = max(noticed, h.to)
		}
	}
	plain := overlapOf(st.story.holds, st.bound)
	st.allowed = append(st.allowed, excess{span{frozen.from, noticed + 1}, held})
	v.note("%d units above the limit while frozen, of %d that the frozen worker held; it had noticed %d ms after it woke",
		plain.over, held, noticed.since(frozen.to).Milliseconds())
}

// onlyWhatIsAccepted judges by what the resource accepted: of each number only one
// holder at a time can be in it.
func onlyWhatIsAccepted(st *stage, v *verdict) {
	work := fenced(st.story.holds, st.sheet.Limit, st.wasFrozen)
	st.story.holds = work.holds
	v.note("%d stale writes refused", work.refusals)
	if work.refusals == 0 && st.victim >= 0 {
		v.fault("the frozen worker never tried to write with an old fence, so nothing was shown")
	}
	if work.alive > 0 {
		v.fault("%d holders that had their lease were refused by the resource", work.alive)
	}
	v.faults = append(v.faults, work.faults...)
}

// wasFrozen reports whether a hold's worker was stopped meanwhile.
func (st *stage) wasFrozen(h hold) bool {
	for _, m := range st.members {
		for _, f := range m.frozen {
			if m.Worker == h.worker && h.from < f.to && f.from < h.to {
				return true
			}
		}
	}
	return false
}

// flush empties the store.
func flush(st *stage) error { return st.server().do("FLUSHALL") }

func flushScripts(st *stage) error { return st.server().do("SCRIPT", "FLUSH") }

// deleteKeys deletes the keys one by one, each several times.
func deleteKeys(st *stage) error {
	for range 3 {
		keys, err := ask(st.server().addr(), "KEYS", "*")
		if err != nil {
			return err
		}
		for _, k := range strings.Fields(keys) {
			if err := st.server().do("DEL", k); err != nil {
				return err
			}
			time.Sleep(300 * time.Millisecond)
		}
	}
	return nil
}

// evict writes more than the server may keep, until our keys must have gone. The
// least recently used ones go first, which ours are not; then any.
func evict(st *stage) error {
	s := st.server()
	junk := strings.Repeat("x", 10_000)
	for i, policy := range []string{"allkeys-lru", "allkeys-random"} {
		if err := s.do("CONFIG", "SET", "maxmemory-policy", policy, "maxmemory", "4mb"); err != nil {
			return err
		}
		for n := range 1500 {
			err := s.do("SET", fmt.Sprintf("junk:%d:%d", i, n), junk)
			if err != nil && !strings.Contains(err.Error(), "OOM") {
				return err
			}
		}
	}
	return s.do("CONFIG", "SET", "maxmemory", "0")
}

// crashServer ends the server and starts it empty, a moment later.
func crashServer(st *stage) error {
	st.server().kill()
	time.Sleep(300 * time.Millisecond)
	return st.server().start()
}

func freezeServer(st *stage) error {
	if err := st.server().signal(syscall.SIGSTOP); err != nil {
		return err
	}
	time.Sleep(frozenFor)
	return st.server().signal(syscall.SIGCONT)
}

func pauseClients(st *stage) error {
	if err := st.server().do("CLIENT", "PAUSE", "3000"); err != nil {
		return err
	}
	time.Sleep(3 * time.Second)
	return nil
}

// killSubscribers cuts the connections by which grants are pushed, time and again.
func killSubscribers(st *stage) error {
	for range 10 {
		if err := st.server().do("CLIENT", "KILL", "TYPE", "pubsub"); err != nil {
			return err
		}
		time.Sleep(100 * time.Millisecond)
	}
	return nil
}

// killClients cuts every connection, time and again.
func killClients(st *stage) error {
	for range 10 {
		if err := st.server().do("CLIENT", "KILL", "TYPE", "normal"); err != nil {
			return err
		}
		time.Sleep(150 * time.Millisecond)
	}
	return nil
}

// turnedWorld is a server whose clock can be turned.
func turnedWorld(st *stage) error {
	if faketime() == "" {
		return errNoFaketime
	}
	s, err := newTurnedServer(filepath.Join(st.dir, "redis"))
	if err != nil {
		return err
	}
	st.servers = append(st.servers, s)
	return st.linkAll()
}

// errMissing is the kind of error of a scene for which something is not installed.
var errMissing = errors.New("not installed")

var errNoFaketime = fmt.Errorf("libfaketime: %w", errMissing)

// turn sets the server's clock.
func turn(to string) func(*stage) error {
	return func(st *stage) error { return st.server().turn(to) }
}

// weather gives the links of some workers a mood for a while; of all, if none are
// named.
func weather(m mood, long time.Duration, workers ...int) func(*stage) error {
	return func(st *stage) error {
		st.silenced = workers
		st.each(m, workers...)
		time.Sleep(long)
		st.each(mood{})
		return nil
	}
}

// unheard has something happen while half of the workers are cut off, for less than
// their lease: they go on with their slots and hear of it only afterwards.
func unheard(happens func(*stage) error) func(*stage) error {
	return func(st *stage) error {
		st.each(mood{silent: true}, 0, 1)
		err := happens(st)
		time.Sleep(1500 * time.Millisecond)
		st.each(mood{})
		return err
	}
}
