//go:build linux

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"example.com/forebay/bench/rivals"
)

// scenario is one thing that goes wrong, and what it is done to.
type scenario struct {
	name  string
	about string // for the table: what happens, if the name does not say it all
	set   func(*stage)
	// world starts the servers. Nil: one server, with a link to it for each worker.
	world func(*stage) error
	fault func(*stage) error // nil: nothing goes wrong
	after time.Duration      // watched after the fault; 0: as long as a lease needs to be reclaimed, and a little
	// judge adds what this scenario in particular has to show. Nil: nothing.
	judge func(*stage, *verdict)
	// fits says whether the scenario means something for a system. Nil: for all.
	fits  func(contender) bool
	edits []edit // of forebay's sources, of which its workers are built; nil: as they are
	alone bool   // nothing else may run on the machine meanwhile
	short bool   // make test plays it too
}

// contender is a system as it goes through scenarios.
type contender struct {
	name    string // for the table
	system  string
	program string // the executable of its workers
}

func (c contender) ours() bool { return c.system == ourselves }

func (c contender) hasTokens() bool { return strings.HasPrefix(c.system, rivals.TokenList) }

// stage is one run of a scenario.
type stage struct {
	play
	dir   string
	sheet assignment // what every worker is told, apart from what differs
	crew  int        // workers
	blind bool       // nobody can be served before the fault
	tweak func(*assignment)

	servers []*server
	links   []*link // to each worker's store, if it has one
	wires   []*link // between servers
	others  []*process
	members []*member

	before, later span     // in which the rate is taken
	struck        instant  // when the fault began
	healed        instant  // when it had passed
	bound         bound    // the limit
	allowed       []excess // units above it that this scenario must bear
	remarks       []string
	ahead         int   // of a storm: by how many seconds the server's clock is
	silenced      []int // workers that are cut off; nil: all
	victim        int   // the worker that is killed or stopped, -1 if none is
	story         *story
}

// The usual scene. Callers hold for less than they could, so that two or three scenes
// fit on one machine and the rate tells of slots, not of processors.
const (
	usualCrew     = 4
	usualLimit    = 12
	usualLease    = 2 * time.Second
	usualPatience = time.Second
)

// excess is units that may be held above the limit for a while.
type excess struct {
	span
	units int
}

func newStage(p play, dir string) *stage {
	st := &stage{play: p, dir: dir, crew: usualCrew, victim: -1}
	st.sheet = assignment{
		System: p.system, Limit: usualLimit, Callers: 8, Patience: usualPatience, Records: 1 << 19,
		Work: work{Hold: 8 * time.Millisecond, Long: 120 * time.Millisecond},
		Loan: loan{Lease: usualLease, WhenAway: "closed"},
	}
	st.after = max(p.after, 8*usualLease/5+3500*time.Millisecond)
	if p.waves {
		st.sheet.Work.Waves = waveLength
	}
	if p.set != nil {
		p.set(st)
	}
	if p.removal != nil && p.removal.tune != nil {
		p.removal.tune(st)
	}
	st.bound = always(st.sheet.Limit)
	return st
}

// run plays the scenario and returns what happened.
func (st *stage) run() (v *verdict, err error) {
	defer st.clear()
	world := st.world
	if world == nil {
		world = (*stage).oneServer
	}
	if err := world(st); err != nil {
		return nil, err
	}
	if err := st.hireAll(); err != nil {
		return nil, err
	}
	if err := st.warm(); err != nil {
		return nil, err
	}
	if st.fault != nil {
		err = st.fault(st)
	} else {
		time.Sleep(2 * time.Second)
	}
	st.healed = now()
	time.Sleep(st.after)
	end := now()
	st.later = span{end.add(-2 * time.Second), end}
	err = errors.Join(err, st.partAll())
	var lives []life
	for _, m := range st.members {
		lives = append(lives, m.life())
	}
	st.story = tell(lives)
	return st.verdict(), err
}

// oneServer is the usual world.
func (st *stage) oneServer() error {
	s, err := newServer(filepath.Join(st.dir, "redis"))
	if err != nil {
		return err
	}
	st.servers = append(st.servers, s)
	return st.linkAll()
}

// linkAll makes a link to the first server for each worker.
func (st *stage) linkAll() error {
	for range st.crew {
		l, err := newLink(st.servers[0].addr())
		if err != nil {
			return err
		}
		st.links = append(st.links, l)
	}
	return nil
}

// hireAll starts the workers: the first, and once somebody was served the others. How
// it is when all begin at once is a scenario of its own.
func (st *stage) hireAll() error {
	if st.sheet.Loan.Fenced {
		st.sheet.Resource = filepath.Join(st.dir, "resource")
		if err := newResource(st.sheet.Resource); err != nil {
			return err
		}
	}
	errs := make([]error, st.crew)
	st.members = make([]*member, st.crew)
	var all sync.WaitGroup
	for i := range st.crew {
		all.Go(func() { st.members[i], errs[i] = st.hire(i) })
		if i == 0 && !st.sheet.Rush && !st.blind {
			all.Wait()
			err := errs[0]
			if err == nil {
				err = st.flows(st.members[:1], 1)
			}
			if err != nil {
				st.members = st.members[:1]
				return err
			}
		}
	}
	all.Wait()
	return errors.Join(errs...)
}

// flows waits until so many calls have been served.
func (st *stage) flows(by []*member, calls uint64) error {
	return eventually(fmt.Sprintf("%d calls were served", calls), func() bool { return served(by) >= calls })
}

// hire starts one worker.
func (st *stage) hire(i int) (*member, error) {
	a := st.sheet
	a.Worker = i
	a.Tape = filepath.Join(st.dir, fmt.Sprintf("worker%d.tape", i))
	if len(st.links) > 0 {
		a.Redis.Addrs = []string{st.links[i%len(st.links)].addr()}
	}
	if st.tweak != nil {
		st.tweak(&a)
	}
	return hire(st.program, st.dir, a)
}

// warm waits until work flows, and then looks how much of it does.
func (st *stage) warm() error {
	if st.blind {
		st.struck = now()
		st.before = span{st.struck, st.struck + 1}
		return nil
	}
	if err := st.flows(st.members, 50); err != nil {
		return err
	}
	time.Sleep(time.Second)
	from := now()
	time.Sleep(2 * time.Second)
	st.struck = now()
	st.before = span{from, st.struck}
	return nil
}

// eventually waits for a condition of the scene.
func eventually(what string, holds func() bool) error {
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if holds() {
			return nil
		}
	}
	return fmt.Errorf("chaos: it never came that %s", what)
}

// partAll ends the workers and waits for them.
func (st *stage) partAll() error {
	errs := make([]error, len(st.members))
	var all sync.WaitGroup
	for i, m := range st.members {
		all.Go(func() { errs[i] = m.part() })
	}
	all.Wait()
	return errors.Join(errs...)
}

// clear ends whatever runs, and removes what it left.
func (st *stage) clear() {
	for _, m := range st.members {
		if m != nil && m.cmd.Process != nil {
			m.kill()
		}
		if m != nil && m.tape != nil {
			m.tape.close()
		}
	}
	for _, l := range append(st.links, st.wires...) {
		l.close()
	}
	for _, p := range st.others {
		p.kill()
	}
	for _, s := range st.servers {
		s.kill()
	}
	if st.dir != "" {
		os.RemoveAll(st.dir)
	}
}

// server returns the server that the workers use.
func (st *stage) server() *server { return st.servers[0] }

// each gives links a mood: all of them, or those of some workers.
func (st *stage) each(m mood, workers ...int) {
	for i, l := range st.links {
		if len(workers) == 0 || contains(workers, i) {
			l.set(m)
		}
	}
}

func contains(all []int, n int) bool {
	for _, x := range all {
		if x == n {
			return true
		}
	}
	return false
}
