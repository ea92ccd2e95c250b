//go:build linux

package main

import (
	"fmt"
	"math"
	"time"
)

// awayScenarios take the store away from gates of each policy. What they must show is
// what the policy promises.
func awayScenarios() (all []scenario) {
	for _, policy := range []string{"closed", "share", "open"} {
		with := func(name string, s scenario) {
			set := s.set
			s.name = fmt.Sprintf("%s, `%s`", name, policy)
			s.fits = contender.ours
			s.set = func(st *stage) {
				st.sheet.Loan.WhenAway = policy
				st.sheet.Work.Deadline = 200 * time.Millisecond
				if set != nil {
					set(st)
				}
			}
			if s.judge == nil {
				s.judge = keepsItsWord
			}
			all = append(all, s)
		}
		with("no store for 6 s", scenario{fault: weather(mood{silent: true}, 6*time.Second)})
		with("no store for the first 3 s", scenario{set: startAlone, world: noWorld, fault: firstContact})
		with("a store that takes 200 ms, 6 s", scenario{fault: weather(mood{delay: 100 * time.Millisecond}, 6*time.Second)})
		with("a store that comes and goes, 6 s", scenario{fault: flap, judge: survivesFlapping})
		with("no store for one half, 6 s", scenario{fault: weather(mood{silent: true}, 6*time.Second, 0, 1)})
	}
	all = append(all, scenario{
		name: "no store for one half, 6 s, `share` withheld", fits: contender.ours,
		set: func(st *stage) {
			st.sheet.Loan.WhenAway, st.sheet.Loan.Withhold = "share", 20*time.Second
		},
		fault: weather(mood{silent: true}, 6*time.Second, 0, 1), judge: keepsItsWord,
	})
	return all
}

// startAlone starts the workers while there is no store.
func startAlone(st *stage) { st.blind = true }

// noWorld is a server that nobody reaches.
func noWorld(st *stage) error {
	if err := st.oneServer(); err != nil {
		return err
	}
	st.each(mood{cut: true})
	return nil
}

// firstContact lets the workers reach the store.
func firstContact(st *stage) error {
	time.Sleep(3 * time.Second)
	st.each(mood{})
	return nil
}

// flap takes the store away and gives it back, time and again.
func flap(st *stage) error {
	for range 10 {
		st.each(mood{cut: true})
		time.Sleep(300 * time.Millisecond)
		st.each(mood{})
		time.Sleep(300 * time.Millisecond)
	}
	return nil
}

// How long the store has been away for certain before the policy must be in force; a
// share that is withheld from the others begins later.
const (
	awayFor     = usualLease + 500*time.Millisecond
	withheldFor = usualLease*165/100 + 500*time.Millisecond
)

// keepsItsWord looks at the time in which the policy is in force.
func keepsItsWord(st *stage, v *verdict) {
	alone := span{st.struck.add(awayFor), st.healed}
	if st.sheet.Loan.Withhold > 0 {
		alone.from = st.struck.add(withheldFor)
	}
	if st.blind {
		alone.from = st.struck.add(time.Second)
	}
	use := st.story.use(alone, st.sheet.Limit)
	v.note("%.0f %% in use while alone", 100*use)
	cut := 0 // workers
	for i := range st.members {
		if st.silenced == nil || contains(st.silenced, i) {
			cut++
		}
	}
	share := st.sheet.Limit / st.crew
	switch st.sheet.Loan.WhenAway {
	case "closed":
		if cut == st.crew && use > 0 {
			v.fault("%.1f %% of the limit was in use by gates that should refuse", 100*use)
		}
	case "open":
		// Each may use all of it, also when a busy machine makes it look as if the store was
		// away.
		st.allowed = append(st.allowed, excess{span{0, math.MaxInt64}, (st.crew - 1) * st.sheet.Limit})
		if use < 1.2 {
			v.fault("only %.0f %% of the limit was in use by gates that should each use all of it", 100*use)
		}
	case "share":
		if cut < st.crew && st.sheet.Loan.Withhold == 0 {
			st.allowed = append(st.allowed, excess{span{st.struck, st.healed.add(usualLease)}, cut * share})
		}
		if !st.blind && use < min(0.6, 0.8*v.use[0]) {
			v.fault("only %.0f %% of the limit was in use by gates that should each use a share", 100*use)
		}
	}
}

// survivesFlapping judges by the limit alone: which policy is in force when nobody can
// say.
func survivesFlapping(st *stage, v *verdict) {
	if st.sheet.Loan.WhenAway == "open" {
		st.allowed = append(st.allowed, excess{span{0, math.MaxInt64}, (st.crew - 1) * st.sheet.Limit})
	}
}
