package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"example.com/forebay"
	"example.com/forebay/cluster"
	"example.com/forebay/forebaytest"
)

// A way in which the store is away.
type absence struct {
	name string
	is   forebaytest.Faults
}

var absences = []absence{
	{"down", forebaytest.Faults{Err: errAway}},
	{"slow", forebaytest.Faults{Takes: 200 * time.Millisecond}},
	{"silent", forebaytest.Faults{LoseRequest: 1}},
	{"misconfigured", forebaytest.Faults{Err: fmt.Errorf("%w: NOPERM", cluster.ErrSetup)}},
}

// TestRC19StoreAwayMidway: for each policy, what is decided while the store is away, that
// nobody waits longer than its patience for it, and that all is as before afterwards.
func TestRC19StoreAwayMidway(t *testing.T) {
	for policy, want := range map[cluster.Policy]struct {
		mode  string
		runs  int // on each of two instances, with a limit of 10
		other forebay.Decision
	}{
		cluster.Share:  {"share", 5, forebay.RejectedTimeout},
		cluster.Closed: {"closed", 0, forebay.RejectedStore},
		cluster.Open:   {"open", 10, forebay.RejectedTimeout},
	} {
		for i, absent := range slices.Concat(absences, absences) {
			numbered := i >= len(absences)
			t.Run(fmt.Sprintf("%s/%s/numbered=%t", want.mode, absent.name, numbered), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					r := newRig(t, 10)
					r.config.MaxWait = 500 * time.Millisecond
					r.terms.WhenAway, r.terms.Fenced = policy, numbered
					a, b := r.join(), r.join()
					time.Sleep(15 * time.Second) // both know of each other
					kept := a.take(4)
					r.everywhere(absent.is)
					for _, l := range b.take(1) { // it notices as it needs the store
						l.Release()
					}
					time.Sleep(time.Second)
					if a.lost(kept[0]) {
						t.Error("a lease is lost within its time")
					}
					kept[3].Release()
					if l, ok := a.try(); !ok {
						t.Error("a slot is not used again within its time")
					} else {
						l.Release()
					}
					time.Sleep(4 * time.Second)
					if !a.lost(kept[0]) {
						t.Error("a lease outlives its time")
					}
					for _, l := range kept {
						l.Release()
					}
					for _, in := range []*instance{a, b} {
						leases := in.take(20)
						if len(leases) != want.runs || in.mode() != want.mode {
							t.Errorf("%s: %d run in mode %s; want %d in %s", in.name, len(leases), in.mode(), want.runs, want.mode)
						}
						began := time.Now()
						_, err := in.gate.Acquire(context.Background(), forebay.Call{})
						if d := decisionOf(err); d != want.other {
							t.Errorf("%s: one more is told %v, want %v", in.name, d, want.other)
						}
						if took := time.Since(began); took > 500*time.Millisecond {
							t.Errorf("%s: one more waits for %v", in.name, took)
						}
						for _, l := range leases {
							l.Release()
						}
					}
					healed(r)
					time.Sleep(2 * time.Second)
					if n := len(a.take(20)); n != 10 || a.mode() != "normal" {
						t.Errorf("afterwards %d run in mode %s", n, a.mode())
					}
				})
			})
		}
	}
}

// TestRC19StoreAwayAtStart: who has never heard of a ledger does not know how many others
// there are.
func TestRC19StoreAwayAtStart(t *testing.T) {
	for _, c := range []struct {
		terms cluster.Terms
		mode  string
		runs  int
	}{
		{cluster.Terms{}, "closed", 0},
		{cluster.Terms{MinShare: 2}, "share", 2},
		{cluster.Terms{WhenAway: cluster.Closed}, "closed", 0},
		{cluster.Terms{WhenAway: cluster.Open}, "open", 10},
	} {
		for _, absent := range absences {
			t.Run(fmt.Sprintf("%s %d/%s", c.mode, c.runs, absent.name), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					r := newRig(t, 10)
					r.terms, r.faults = c.terms, absent.is
					in := r.join()
					first := make(chan error)
					go func() {
						l, err := in.gate.Acquire(context.Background(), forebay.Call{})
						l.Release()
						first <- err
					}()
					began := time.Now()
					err := <-first
					if took := time.Since(began); took > 300*time.Millisecond {
						t.Errorf("the first call waits for %v", took)
					}
					if (err == nil) != (c.runs > 0) {
						t.Errorf("the first call: %v", err)
					}
					if n := len(in.take(20)); n != c.runs || in.mode() != c.mode {
						t.Errorf("%d run in mode %s; want %d in %s", n, in.mode(), c.runs, c.mode)
					}
					st, _ := in.gate.ClusterStats()
					if st.Error == "" || st.Failures == 0 || st.Epoch != 0 {
						t.Errorf("%+v", st)
					}
				})
			})
		}
	}
}

// TestAwayIsAskedInTheBackground: while the store is away nobody pays for it, and it is
// asked a few times a second, whatever is called for.
func TestAwayIsAskedInTheBackground(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 10)
		in := r.join()
		time.Sleep(time.Second)
		r.everywhere(forebaytest.Faults{Err: errAway})
		time.Sleep(5 * time.Second)
		before, _ := in.gate.ClusterStats()
		in.work(20, time.Millisecond, time.Millisecond)
		n := r.during(10 * time.Second)
		after, _ := in.gate.ClusterStats()
		if asked := after.Failures - before.Failures; asked < 18 || asked > 45 {
			t.Errorf("asked %d times in 10 s", asked)
		}
		if n < 40_000 {
			t.Errorf("%d calls in 10 s", n)
		}
	})
}

// TestChangesAreReported: one report for each change of how a gate goes on, none for the
// calls meanwhile.
func TestChangesAreReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 10)
		in := r.join()
		r.join()
		in.work(5, time.Millisecond, time.Millisecond)
		time.Sleep(time.Second)
		r.everywhere(forebaytest.Faults{Err: errAway})
		time.Sleep(5 * time.Second)
		healed(r)
		time.Sleep(5 * time.Second)
		var told []string
		for _, c := range in.told() {
			told = append(told, fmt.Sprintf("%s>%s %v %s", c.Was, c.Mode, c.Away, c.Error))
		}
		want := []string{
			"joining>normal false ", "normal>normal true the store is away",
			"normal>share true the store is away", "share>share false ", "share>normal false ",
		}
		if fmt.Sprint(told) != fmt.Sprint(want) {
			t.Errorf("told %q", told)
		}
	})
}

// TestWithheld: the share of an instance that is cut off is kept from the others, from
// before it is used until after, so the limit holds although only some are cut off.
func TestWithheld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 12)
		r.each, r.holds, r.pauses = 6, 10*time.Millisecond, time.Millisecond
		r.terms = cluster.Terms{Withhold: 10 * time.Second}
		for range 4 {
			r.joinAndWork()
		}
		time.Sleep(2 * time.Second)
		cut := r.instances[0]
		cut.path.SetFaults(forebaytest.Faults{Err: errAway})
		time.Sleep(8 * time.Second)
		if m := cut.mode(); m != "share" {
			t.Errorf("mode %s", m)
		}
		if n := cut.gate.Stats().InUse; n > 3 {
			t.Errorf("%d run", n)
		}
		time.Sleep(5 * time.Second) // it is over 12 s after an exchange that came just in time
		if m := cut.mode(); m != "closed" {
			t.Errorf("mode %s once the share is over", m)
		}
		if n := r.during(5 * time.Second); n < 3500 {
			t.Errorf("%d calls in 5 s", n)
		}
		healed(r)
		time.Sleep(2 * time.Second)
		if m := cut.mode(); m != "normal" {
			t.Errorf("mode %s afterwards", m)
		}
		r.halt()
		r.rec.check(t)
	})
}

func decisionOf(err error) forebay.Decision {
	var refused *forebay.RejectedError
	if errors.As(err, &refused) {
		return refused.Decision()
	}
	return forebay.Accepted
}

// take takes up to n slots.
func (in *instance) take(n int) (leases []forebay.Lease) {
	for range n {
		l, ok := in.gate.TryAcquire(forebay.Call{})
		if !ok {
			break
		}
		leases = append(leases, l)
	}
	return leases
}

func (in *instance) try() (forebay.Lease, bool) { return in.gate.TryAcquire(forebay.Call{}) }

// lost reports whether a lease is.
func (in *instance) lost(l forebay.Lease) bool {
	ctx, cancel := l.Context(context.Background())
	defer cancel()
	synctest.Wait()
	return errors.Is(context.Cause(ctx), forebay.ErrLeaseLost)
}
