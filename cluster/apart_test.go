package cluster_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"example.com/forebay/cluster"
	"example.com/forebay/forebaytest"
)

// apart plays a bubble in which instances share a limit of 12 whose shares are withheld,
// and fails if ever more than 12 run.
func apart(t *testing.T, terms cluster.Terms, instances int, what func(r *rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 12)
		r.terms = terms
		r.each, r.holds, r.pauses = 8, 25*time.Millisecond, 2*time.Millisecond
		for range instances {
			r.joinAndWork()
		}
		time.Sleep(3 * time.Second)
		what(r)
		r.halt()
		r.rec.check(t)
	})
}

// partial are ways in which one instance is cut off and the others are not.
var partial = map[string]forebaytest.Faults{
	"down":       {Err: errAway},
	"silent":     {LoseRequest: 1},
	"no answers": {LoseReply: 1}, // the ledger hears all, and believes it there
	"late":       {Takes: 3 * time.Second},
}

// TestPartialCut: some are cut off for any time between a moment and longer than their
// shares last, and come back; what runs is within the limit at every moment.
// It runs in a bubble.
func TestPartialCut(t *testing.T) {
	for name, f := range partial {
		for i, away := range []time.Duration{2100, 2600, 3100, 3400, 6000, 14000, 20000} {
			if (testing.Short() || underRace) && i%3 > 0 {
				continue
			}
			t.Run(fmt.Sprint(name, " ", away*time.Millisecond), func(t *testing.T) {
				t.Parallel()
				apart(t, cluster.Terms{Withhold: 10 * time.Second}, 4, func(r *rig) {
					r.store.Drift([]float64{0.9, 1.1, 1}[i%3])
					for _, in := range r.instances[:2] {
						in.path.SetFaults(f)
					}
					time.Sleep(away * time.Millisecond)
					healed(r)
					time.Sleep(3 * time.Second)
					if n := r.during(time.Second); n < 350 {
						t.Errorf("%d calls in a second, afterwards", n)
					}
				})
			})
		}
	}
}

// TestIdleIsCutOff: one that held nothing has its share all the same, in whatever way it is
// cut off, and what the others were lent in its place has come back by then, though their
// calls take more than a second and the server's clock is slow. In bubbles.
func TestIdleIsCutOff(t *testing.T) {
	for name, f := range partial {
		t.Run(name, func(t *testing.T) {
			apart(t, cluster.Terms{Withhold: time.Minute}, 0, func(r *rig) {
				r.store.Drift(0.9)
				r.holds = 1250 * time.Millisecond
				idle := r.join()
				for range 3 {
					r.joinAndWork()
				}
				time.Sleep(5 * time.Second)
				idle.path.SetFaults(f)
				time.Sleep(3 * time.Second)
				idle.work(14, 20*time.Millisecond, time.Millisecond)
				time.Sleep(4 * time.Second)
				if n := idle.gate.Stats().InUse; n != 3 {
					t.Errorf("%d run, of a share of 3", n)
				}
			})
		})
	}
}

// TestShareEndsInTime: a share ends before the ledger lends it to others, also on a clock
// that is a tenth faster, and what runs on it ends with it.
// It runs in a bubble.
func TestShareEndsInTime(t *testing.T) {
	apart(t, cluster.Terms{Withhold: time.Minute}, 3, func(r *rig) {
		cut := r.join()
		time.Sleep(5 * time.Second)
		r.store.Drift(1.1)
		cut.path.SetFaults(forebaytest.Faults{Err: errAway})
		cut.work(14, 5*time.Minute, time.Millisecond)
		time.Sleep(61 * time.Second)
		if n := cut.gate.Stats().InUse; n != 3 {
			t.Errorf("%d run, of a share of 3", n)
		}
		time.Sleep(time.Minute)
		if n := cut.gate.Stats().InUse; n != 0 {
			t.Errorf("%d run, once the share is over", n)
		}
	})
}

// TestSharesAddUp: who joins while others are cut off has a share of what they leave, so
// all of them may be cut off next.
// It runs in a bubble.
func TestSharesAddUp(t *testing.T) {
	apart(t, cluster.Terms{Withhold: time.Minute}, 2, func(r *rig) {
		r.instances[0].path.SetFaults(forebaytest.Faults{Err: errAway})
		time.Sleep(10 * time.Second)
		r.joinAndWork()
		r.joinAndWork()
		time.Sleep(10 * time.Second)
		r.everywhere(forebaytest.Faults{Err: errAway})
		time.Sleep(20 * time.Second)
		if n := r.rec.peakSince(); n < 10 {
			t.Errorf("%d run at most", n)
		}
	})
}

// TestShareAsItIsKnown: what counts is the share of which an instance has heard, not the
// smaller one in an answer that was lost.
// It runs in a bubble.
func TestShareAsItIsKnown(t *testing.T) {
	apart(t, cluster.Terms{Withhold: time.Minute}, 0, func(r *rig) {
		r.each = 14
		r.joinAndWork()
		time.Sleep(3 * time.Second)
		alone := r.instances[0]
		alone.path.SetFaults(forebaytest.Faults{LoseReply: 1, LosePush: 1})
		time.Sleep(10 * time.Millisecond)
		r.joinAndWork()
		time.Sleep(time.Second)
		alone.path.SetFaults(forebaytest.Faults{Err: errAway})
		time.Sleep(10 * time.Second)
	})
}

// TestStoreStoodStill: the store answers nobody for a while, and then some, who must not
// be lent what the others use; also if its clock does not show how long that was.
// It runs in a bubble.
func TestStoreStoodStill(t *testing.T) {
	for _, jump := range []time.Duration{0, -time.Hour, time.Hour} {
		for _, still := range []time.Duration{3 * time.Second, 5 * time.Second} {
			t.Run(fmt.Sprint(still, " ", jump), func(t *testing.T) {
				apart(t, cluster.Terms{Withhold: time.Minute}, 4, func(r *rig) {
					r.store.Freeze()
					time.Sleep(still)
					for _, in := range r.instances[:2] {
						in.path.SetFaults(forebaytest.Faults{Err: errAway})
					}
					r.store.Jump(jump)
					r.store.Thaw()
					r.joinAndWork() // it has no share to wait for the end of
					time.Sleep(5 * time.Second)
				})
			})
		}
	}
}

// TestWithheldFromLongCalls: calls of others that were there before an instance was missed
// run besides its share until they end; nothing else does, also once it is back.
// It runs in a bubble.
func TestWithheldFromLongCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 12)
		r.terms.Withhold = time.Minute
		r.rec.allow(15)
		cut, others := r.join(), r.join()
		time.Sleep(5 * time.Second)
		r.join()
		r.join()
		time.Sleep(5 * time.Second)
		long := others.take(12)
		cut.path.SetFaults(forebaytest.Faults{Err: errAway})
		time.Sleep(5 * time.Second)
		mine := cut.take(12)
		if len(long) != 12 || len(mine) != 3 {
			t.Fatalf("%d and %d run", len(long), len(mine))
		}
		healed(r)
		time.Sleep(5 * time.Second)
		if m := cut.mode(); m != "normal" {
			t.Errorf("mode %s", m)
		}
		for _, l := range long[:3] {
			l.Release()
			for range 2 {
				if n := len(others.take(1)); n > 0 {
					t.Error("what ends is used by others, before what ran on the share is covered")
				}
				time.Sleep(time.Second)
			}
		}
		mine[0].Release()
		time.Sleep(time.Second)
		if n := len(others.take(1)); n != 1 {
			t.Error("what is free is not lent")
		}
	})
}
