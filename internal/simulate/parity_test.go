package simulate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"example.com/forebay"
	"example.com/forebay/internal/admit"
)

// attempt is what a gate did with one call: the simulated one is told it when the call
// comes, and a real one has to do the same.
type attempt struct {
	at       time.Duration // when it came
	decided  time.Duration
	decision string
	held     time.Duration // of one that ran
	caller   string
	cost     int
	gates    []string
	leaves   time.Duration // its caller, while it waits; 0: never
}

// simulated plays a scenario and returns every attempt of it that was decided.
func simulated(sc *Scenario) []attempt {
	s := newSim(sc)
	var list []attempt
	running := map[*call]int{}
	s.told = func(c *call, v admit.Verdict) {
		a := attempt{
			at: time.Duration(c.asked), decided: time.Duration(s.now), decision: decisions[v].String(),
			caller: c.caller, cost: c.route.cost, gates: c.route.Gates,
		}
		if c.leavesAt != never {
			a.leaves = time.Duration(c.leavesAt)
		}
		list = append(list, a)
		if v == admit.Granted {
			running[c] = len(list) - 1
		}
	}
	// A call's end is seen as it is taken out of its last resource.
	s.ended = func(c *call) {
		i := running[c]
		list[i].held = time.Duration(s.now) - list[i].decided
		delete(running, c)
	}
	s.until(instant(sc.For))
	for _, i := range running { // on
		list[i].held = time.Hour
	}
	slices.SortStableFunc(list, func(a, b attempt) int { return int(a.at - b.at) })
	return list
}

// TestParity: the gates of the server, on a fake clock, decide the calls of a scenario as
// the simulator did, each at the same nanosecond. In a bubble. They are observed, so that
// their machines see every call: what a gate without lock tells afterwards has no time.
func TestParity(t *testing.T) {
	for seed := range uint64(2) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			sc := everything()
			sc.Seed, sc.Instances, sc.WarmUp, sc.For = seed, 1, 0, 5*time.Second
			for i := range sc.Clients { // calls at one nanosecond have no order
				a := &sc.Clients[i].Arrivals
				a.Batch, a.Even, a.Times = 0, false, nil
				sc.Clients[i].Tells, sc.Clients[i].Retries.Honours = false, false
			}
			list := simulated(sc)
			if len(list) < 10_000 {
				t.Fatalf("%d attempts", len(list))
			}
			synctest.Test(t, func(t *testing.T) { replay(t, sc, list) })
		})
	}
}

// replay puts the attempts to real gates, each at its time. It runs in a bubble.
func replay(t *testing.T, sc *Scenario, list []attempt) {
	gates := map[string]*forebay.Gate{}
	for _, g := range sc.Gates {
		c := g.Config
		real, err := forebay.New(forebay.Config{
			Name: g.Name, MaxInFlight: c.Limit, MaxWait: c.MaxWait, MaxWaiting: c.MaxWaiting, Track: true,
			Observers: []forebay.Observer{forebay.ObserverFunc(func(forebay.Event) {})},
			PerCaller: forebay.PerCaller{MaxInFlight: c.PerCaller, MaxCallers: c.MaxCallers},
		})
		if err != nil {
			t.Fatal(err)
		}
		gates[g.Name] = real
	}
	var all sync.WaitGroup
	var mu sync.Mutex // guards differ
	differ := 0
	zero := time.Now()
	for _, a := range list {
		if len(a.gates) == 0 {
			continue
		}
		all.Go(func() {
			time.Sleep(a.at)
			decision, end := ask(gates, a)
			decided := time.Since(zero)
			if decision == "accepted" {
				time.Sleep(a.held)
			}
			end()
			// Of the last ones some who stood in line with them have no decision and are missing.
			if decision == a.decision && decided == a.decided || a.at > sc.For-time.Second/2 {
				return
			}
			mu.Lock()
			defer mu.Unlock()
			if differ++; differ <= 5 {
				t.Errorf("a call at %v to %v: %s at %v; simulated %s at %v", a.at, a.gates, decision, decided, a.decision, a.decided)
			}
		})
	}
	all.Wait()
	if differ > 5 {
		t.Errorf("%d more", differ-5)
	}
}

// ask puts one attempt to real gates.
func ask(gates map[string]*forebay.Gate, a attempt) (decision string, end func()) {
	ctx := context.Background()
	cancel := func() {}
	if a.leaves > 0 {
		var leave context.CancelFunc
		ctx, leave = context.WithCancel(ctx)
		timer := time.AfterFunc(a.leaves-a.at, leave)
		cancel = func() { timer.Stop(); leave() }
	}
	call := forebay.Call{Cost: a.cost, Caller: a.caller}
	var lease forebay.Lease
	var err error
	if len(a.gates) == 1 {
		lease, err = gates[a.gates[0]].Acquire(ctx, call)
	} else {
		var way []*forebay.Gate
		for _, name := range a.gates {
			way = append(way, gates[name])
		}
		chain, wrong := forebay.NewChain(way...)
		if wrong != nil {
			return wrong.Error(), cancel
		}
		lease, err = chain.Acquire(ctx, call)
	}
	var refused *forebay.RejectedError
	switch {
	case err == nil:
		return "accepted", func() { cancel(); lease.Release() }
	case errors.Is(err, context.Canceled):
		return "canceled", cancel
	case errors.As(err, &refused):
		return refused.Decision().String(), cancel
	}
	return err.Error(), cancel
}
