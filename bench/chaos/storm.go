//go:build linux

package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// seedVariable makes a storm blow as another one did: the same faults in the same
// order, if not at the same nanosecond.
const seedVariable = "CHAOS_SEED"

// storm lets everything go wrong at the same time: network, server and workers, each
// again and again, in an order that comes from a seed.
func storm(long time.Duration, winds ...wind) func(*stage) error {
	return func(st *stage) error {
		seed := uint64(time.Now().UnixNano())
		if s, err := strconv.ParseUint(os.Getenv(seedVariable), 10, 64); err == nil {
			seed = s
		}
		st.remarks = append(st.remarks, fmt.Sprintf("%s=%d", seedVariable, seed))
		end := time.Now().Add(long)
		errs := make([]error, len(winds))
		var all sync.WaitGroup
		for i, w := range winds {
			all.Go(func() {
				random := rand.New(rand.NewPCG(seed, uint64(i)))
				for time.Now().Before(end) && errs[i] == nil {
					time.Sleep(time.Duration(random.IntN(1500)) * time.Millisecond)
					errs[i] = w(st, random)
				}
			})
		}
		all.Wait()
		st.each(mood{})
		return errors.Join(errs...)
	}
}

// wind is one kind of trouble; each call makes some of it, and ends it.
type wind func(*stage, *rand.Rand) error

// badNetwork gives some workers' links some mood for a while.
func badNetwork(st *stage, random *rand.Rand) error {
	moods := []mood{
		{cut: true}, {silent: true}, {mute: true},
		{delay: 20 * time.Millisecond, spread: 30 * time.Millisecond}, {delay: 150 * time.Millisecond},
		{swallow: 0.2}, {drop: 0.2}, {again: 0.5, belated: time.Second},
		{swallow: 0.05, drop: 0.05, again: 0.1, belated: 200 * time.Millisecond, spread: 10 * time.Millisecond},
	}
	m := moods[random.IntN(len(moods))]
	for i := range st.links {
		if random.IntN(2) == 0 {
			st.each(m, i)
		}
	}
	time.Sleep(100*time.Millisecond + time.Duration(random.IntN(3000))*time.Millisecond)
	st.each(mood{})
	return nil
}

// badServer does something to the server. It may be away meanwhile, so that a command
// of ours finds nobody is no fault.
func badServer(st *stage, random *rand.Rand) error {
	s := st.server()
	switch random.IntN(9) {
	case 0, 1:
		s.do("FLUSHALL")
	case 2:
		s.do("SCRIPT", "FLUSH")
	case 3:
		s.do("CLIENT", "KILL", "TYPE", "pubsub")
	case 4:
		s.do("CLIENT", "KILL", "TYPE", "normal")
	case 5:
		// The server counts the pause by its wall clock, which is not to be turned meanwhile.
		s.do("CLIENT", "PAUSE", "10000")
		time.Sleep(time.Duration(random.IntN(1500)) * time.Millisecond)
		s.do("CLIENT", "UNPAUSE")
	case 6:
		s.kill()
		time.Sleep(time.Duration(random.IntN(1000)) * time.Millisecond)
		return s.start()
	case 7:
		if err := s.signal(syscall.SIGSTOP); err != nil {
			return err
		}
		time.Sleep(time.Duration(random.IntN(3000)) * time.Millisecond)
		return s.signal(syscall.SIGCONT)
	case 8:
		if s.clock != "" {
			// Ahead only: a server that loses its data and whose clock goes back begins with
			// fences that were given out before, until somebody tells it of the later ones.
			st.ahead += random.IntN(3600)
			return s.turn(fmt.Sprintf("%+d", st.ahead))
		}
	}
	return nil
}

// badWorkers ends a worker, well or badly, and starts another in its place.
func badWorkers(st *stage, random *rand.Rand) error {
	i := random.IntN(st.crew)
	old := st.members[i]
	if random.IntN(2) == 0 {
		old.kill()
	} else {
		old.terminate() // it may not be able to say so to the store
		<-old.exit
	}
	time.Sleep(time.Duration(random.IntN(1000)) * time.Millisecond)
	next, err := st.hire(len(st.members))
	if err != nil {
		return err
	}
	st.members = append(st.members, st.members[i])
	st.members[i] = next
	return nil
}

// sleepyWorkers stops a worker, for longer than its lease.
func sleepyWorkers(st *stage, random *rand.Rand) error {
	m := st.members[random.IntN(st.crew)]
	if err := m.freeze(); err != nil {
		return err
	}
	time.Sleep(time.Second + time.Duration(random.IntN(4000))*time.Millisecond)
	return m.thaw()
}
