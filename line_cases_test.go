package forebay

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// SL-13: callers that leave at a random moment lose no slot.
func TestSL13CancelledBetweenAcquireAndRelease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := gateOf(t, Config{MaxInFlight: 5, MaxWait: 3 * time.Millisecond, MaxWaiting: 20})
		work := Func(g, func(ctx context.Context, d time.Duration) (int, error) {
			select {
			case <-time.After(d):
			case <-ctx.Done():
			}
			return 1, ctx.Err()
		})
		for i := range 1000 {
			ctx, cancel := context.WithCancel(context.Background())
			time.AfterFunc(rand.N(5*time.Millisecond), cancel)
			go func() {
				if i%2 == 0 {
					_, _ = work(ctx, time.Millisecond)
					return
				}
				if l, err := g.Acquire(ctx, Call{}); err == nil {
					time.Sleep(time.Millisecond)
					l.Release()
				}
			}()
			time.Sleep(100 * time.Microsecond)
		}
		time.Sleep(time.Second)
		if st := g.Stats(); st.InUse != 0 || st.Waiting != 0 || st.Decisions() != 1000 || st.Granted != st.Released {
			t.Errorf("at rest: %+v", st)
		}
		admitsFullSet(t, g)
	})
}

// SL-17: a full line refuses; nothing runs outside the gate.
func TestSL17OverflowOfTheLineIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := gateOf(t, Config{MaxInFlight: 1, MaxWait: time.Second, MaxWaiting: 1})
		l := take(t, g, 1)
		second := queued(t, context.Background(), g, Call{})
		attemptAt(context.Background(), g, Call{}).refused(t, RejectedBusy, 0)
		shows(t, g, "1/1, waiting 1, accepted 1, busy 1")
		l.Release()
		second.granted(t, 0)
		second.lease.Release()
	})
}

// QU-01: waits that time out cost no slot.
func TestQU01WaitsThatTimeOutCostNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := gateOf(t, Config{MaxInFlight: 8, MaxWait: 50 * time.Millisecond, MaxWaiting: 8})
		var held []Lease
		for range 8 {
			held = append(held, take(t, g, 1))
		}
		var late []*attempt
		for range 8 {
			late = append(late, queued(t, context.Background(), g, Call{}))
		}
		time.Sleep(50 * time.Millisecond)
		for _, at := range late {
			at.refused(t, RejectedTimeout, 50*time.Millisecond)
		}
		for _, l := range held {
			l.Release()
		}
		shows(t, g, "0/8, accepted 8, timeout 8")
		admitsFullSet(t, g)
	})
}

// QU-02: a context that ended before the call never gets a slot.
func TestQU02ContextThatHasEndedNeverGetsASlot(t *testing.T) {
	ctx := ended()
	late, cancel := context.WithDeadline(context.Background(), time.Unix(0, 0))
	defer cancel()
	g := gateOf(t, Config{MaxInFlight: 2, MaxWait: time.Second})
	for range 10_000 {
		if l, err := g.Acquire(ctx, Call{}); !errors.Is(err, context.Canceled) || l.Live() {
			t.Fatalf("lease %v, error %v", l.Live(), err)
		}
		if l, err := g.Acquire(late, Call{}); decisionOf(err) != RejectedDeadline || l.Live() {
			t.Fatalf("lease %v, error %v", l.Live(), err)
		}
	}
	shows(t, g, "0/2, deadline 10000, canceled 10000")
}

// QU-02: if the caller leaves together with the grant, either it has the lease and
// no error, or the next in line has the slot. (TestGrantOfACallerThatLeft… and its
// neighbours force each order.)
func TestQU02LeavesTogetherWithTheGrant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := gateOf(t, Config{MaxInFlight: 1, MaxWait: time.Second, MaxWaiting: 2})
		for range 300 {
			l := take(t, g, 1)
			ctx, cancel := context.WithCancel(context.Background())
			first := queued(t, ctx, g, Call{})
			second := queued(t, context.Background(), g, Call{})
			go cancel()
			go l.Release()
			synctest.Wait()
			if first.err == nil {
				first.lease.Release()
			}
			second.granted(t, 0)
			second.lease.Release()
			if first.err != nil && !errors.Is(first.err, context.Canceled) {
				t.Fatal(first.err)
			}
		}
		admitsFullSet(t, g)
	})
}

// QU-03: when the one at the head goes, those behind who fit start in that instant:
// after a cancel, a timeout, and a disconnect.
func TestQU03TheHeadLeavesAndTheOthersStart(t *testing.T) {
	broken := errors.New("connection reset")
	for _, c := range []struct {
		name  string
		ctx   func() (context.Context, func())
		goes  time.Duration // when the head goes
		ends  Decision
		cause error
	}{
		{"cancel", func() (context.Context, func()) {
			ctx, cancel := context.WithCancel(context.Background())
			return ctx, cancel
		}, 10 * time.Millisecond, Canceled, context.Canceled},
		{"disconnect", func() (context.Context, func()) {
			ctx, cancel := context.WithCancelCause(context.Background())
			return ctx, func() { cancel(broken) }
		}, 10 * time.Millisecond, Canceled, broken},
		{"deadline", func() (context.Context, func()) {
			ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
			context.AfterFunc(ctx, cancel)
			return ctx, nil
		}, 20 * time.Millisecond, RejectedDeadline, context.DeadlineExceeded},
		{"patience", func() (context.Context, func()) { return context.Background(), nil },
			time.Second, RejectedTimeout, ErrRejected},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := gateOf(t, Config{MaxInFlight: 4, MaxWait: time.Second, MaxWaiting: 5})
				l := take(t, g, 3)
				ctx, leave := c.ctx()
				wide := queued(t, ctx, g, Call{Cost: 4})
				time.Sleep(time.Millisecond)
				light := queued(t, context.Background(), g, Call{})
				time.Sleep(c.goes - time.Millisecond)
				if leave != nil {
					leave()
				}
				wide.refused(t, c.ends, c.goes)
				if !errors.Is(wide.err, c.cause) {
					t.Errorf("error %v, want %v", wide.err, c.cause)
				}
				light.granted(t, c.goes-time.Millisecond)
				light.lease.Release()
				l.Release()
				admitsFullSet(t, g)
			})
		})
	}
}

// QU-06: what is checked is what is counted.
func TestQU06CostIsCountedAsItIsChecked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := gateOf(t, Config{MaxInFlight: 10, MaxWait: 10 * time.Millisecond, MaxWaiting: 3})
		l := take(t, g, 8)
		second := queued(t, context.Background(), g, Call{Cost: 8})
		if st := g.Stats(); st.InUse != 8 || st.Calls != 1 || st.Available != 2 || st.Waiting != 1 {
			t.Errorf("%+v, want 8 units in 1 call", st)
		}
		time.Sleep(10 * time.Millisecond)
		second.refused(t, RejectedTimeout, 10*time.Millisecond)
		l.Release()
		shows(t, g, "0/10, accepted 1, timeout 1")
	})
}

// QU-08: a release wakes as many as it has room for, whatever they want.
func TestQU08WaitersForSeveralUnitsAreWoken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := gateOf(t, Config{MaxInFlight: 2, MaxWait: 2 * time.Second, MaxWaiting: 10})
		l := take(t, g, 2)
		two := queued(t, context.Background(), g, Call{Cost: 2})
		time.Sleep(time.Millisecond)
		l.Release()
		two.granted(t, time.Millisecond)
		one, another := queued(t, context.Background(), g, Call{}), queued(t, context.Background(), g, Call{})
		last := queued(t, context.Background(), g, Call{Cost: 2})
		two.lease.Release()
		one.granted(t, 0)
		another.granted(t, 0)
		one.lease.Release()
		shows(t, g, "1/2, waiting 1, accepted 4")
		another.lease.Release()
		last.granted(t, 0)
		last.lease.Release()
	})
}

// QU-08: neither size starves while both keep coming.
func TestQU08NeitherSizeStarves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := gateOf(t, Config{MaxInFlight: 2, MaxWait: time.Second, MaxWaiting: 20})
		var served [3]atomic.Int64
		for i := range 8 {
			cost := 1 + i%2
			go func() {
				for range 50 {
					l, err := g.Acquire(context.Background(), Call{Cost: cost})
					if err != nil {
						t.Errorf("cost %d: %v", cost, err)
						return
					}
					time.Sleep(time.Millisecond)
					l.Release()
					served[cost].Add(1)
				}
			}()
		}
		time.Sleep(time.Minute)
		if served[1].Load() != 200 || served[2].Load() != 200 {
			t.Errorf("served %d of cost 1, %d of cost 2; want 200 each", served[1].Load(), served[2].Load())
		}
	})
}

// QU-09: nobody starts while what runs is at the limit or above; growth starts
// exactly the difference.
func TestQU09LimitLoweredBelowWhatIsInUse(t *testing.T) {
	for _, low := range []int{3, 0} {
		synctest.Test(t, func(t *testing.T) {
			g := gateOf(t, Config{MaxInFlight: 10, MaxWait: time.Hour, MaxWaiting: 5})
			var held []Lease
			for range 10 {
				held = append(held, take(t, g, 1))
			}
			var line []*attempt
			started := func() (n int) {
				synctest.Wait()
				for _, at := range line {
					if at.done() && at.err == nil {
						n++
					}
				}
				return n
			}
			for range 5 {
				line = append(line, queued(t, context.Background(), g, Call{}))
			}
			must(g.SetLimit(low))
			if st := g.Stats(); st.Available != 0 || st.InUse != 10 || st.Capacity != low {
				t.Errorf("after the shrink: %+v", st)
			}
			if low == 0 {
				for _, at := range line {
					at.refused(t, RejectedBusy, 0) // closed refuses everybody at once
				}
				must(g.SetLimit(10))
				shows(t, g, "10/10, accepted 10, busy 5")
				return
			}
			for i, l := range held[:7] {
				l.Release()
				if n := started(); n != 0 {
					t.Fatalf("%d started after release %d, with %d of 3 running", n, i+1, 9-i)
				}
			}
			held[7].Release()
			if n := started(); n != 1 {
				t.Errorf("%d started after the eighth release, want 1", n)
			}
			must(g.SetLimit(6))
			if n := started(); n != 4 {
				t.Errorf("%d have started after growth to 6, want 4: exactly the difference", n)
			}
			shows(t, g, "6/6, waiting 1, accepted 14")
			held[8].Release()
			if n := started(); n != 5 {
				t.Errorf("%d have started, want all 5", n)
			}
		})
	}
}

// QU-09: 100 flips of the limit under load.
func TestQU09LimitFlipsUnderLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := gateOf(t, Config{MaxInFlight: 10, MaxWait: 5 * time.Millisecond, MaxWaiting: 50})
		var running, bound atomic.Int64
		bound.Store(10)
		var stop atomic.Bool
		for range 40 {
			go func() {
				for !stop.Load() {
					l, err := g.Acquire(context.Background(), Call{})
					if err != nil {
						time.Sleep(time.Millisecond)
						continue
					}
					if n := running.Add(1); n > bound.Load() {
						t.Errorf("%d run, at most %d may", n, bound.Load())
					}
					time.Sleep(time.Millisecond)
					running.Add(-1)
					l.Release()
				}
			}()
		}
		for i := range 100 {
			n := int64([]int{3, 0, 6, 1, 10}[i%5])
			bound.Store(max(bound.Load(), n))
			must(g.SetLimit(int(n)))
			time.Sleep(2*time.Millisecond + 500*time.Microsecond) // whoever ran has ended
			bound.Store(n)
			if st := g.Stats(); st.InUse > int(n) || st.Available < 0 {
				t.Errorf("limit %d: %+v", n, st)
			}
			time.Sleep(5 * time.Millisecond)
		}
		stop.Store(true)
		time.Sleep(time.Second)
		must(g.SetLimit(10))
		admitsFullSet(t, g)
	})
}

// QU-10: 0 closes, and says so at once; a configuration needs a number.
func TestQU10LimitZero(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := gateOf(t, Config{MaxInFlight: 2, MaxWait: time.Second})
		must(g.SetLimit(0))
		attemptAt(context.Background(), g, Call{}).refused(t, RejectedBusy, 0)
		if _, ok := g.TryAcquire(Call{}); ok {
			t.Error("TryAcquire passed a closed gate")
		}
		shows(t, g, "0/0, busy 2")
		for _, n := range []int{-1, 1 << 20} {
			if err := g.SetLimit(n); err == nil {
				t.Errorf("SetLimit(%d) is no error", n)
			}
		}
		must(g.SetLimit(1))
		take(t, g, 1).Release()
		for n, want := range map[int]string{
			0:       "forebay: MaxInFlight is 0; it must be at least 1 (SetLimit(0) closes a gate)",
			-1:      "forebay: MaxInFlight is -1; it must be at least 1 (SetLimit(0) closes a gate)",
			1 << 20: "forebay: MaxInFlight is 1048576; it must be at most 1048575",
		} {
			if _, err := New(Config{MaxInFlight: n}); err == nil || err.Error() != want {
				t.Errorf("New with %d: %v, want %s", n, err, want)
			}
		}
	})
}

// QU-11: the bound of the line holds at every instant, and patience counts from
// arrival.
func TestQU11BoundOfTheLineInABurst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const patience = 100 * time.Millisecond
		g := gateOf(t, Config{MaxInFlight: 1, MaxWait: patience, MaxWaiting: 10})
		var all []*attempt
		for i := range 10_000 {
			all = append(all, attemptAt(context.Background(), g, Call{}))
			if i < 20 {
				synctest.Wait() // the first eleven in order
			}
			time.Sleep(time.Microsecond)
		}
		shows(t, g, "1/1, waiting 10, accepted 1, busy 9989")
		time.Sleep(time.Hour)
		for i, at := range all[1:] {
			if i < 10 {
				at.refused(t, RejectedTimeout, patience)
			} else if !at.done() || at.waited != 0 {
				t.Fatalf("call %d was refused after %v, want at once", i+2, at.waited)
			}
		}
		shows(t, g, "1/1, accepted 1, busy 9989, timeout 10")
		all[0].lease.Release()
		admitsFullSet(t, g)
	})
}

// QU-12: under a long overload a first-in-first-out line serves everybody late if
// they may wait long, so the default is not to wait, and a short patience keeps the
// answers useful. Whoever has given up is never served.
func TestQU12ShortWaitsKeepAnswersUseful(t *testing.T) {
	if wait := gateOf(t, Config{MaxInFlight: 1}).Config().MaxWait; wait != 0 {
		t.Errorf("MaxWait is %v by default, want none", wait)
	}
	const (
		work, every, patience = 100 * time.Millisecond, 50 * time.Millisecond, time.Second
		asked                 = 600
	)
	useful := func(maxWait time.Duration) (n int) {
		synctest.Test(t, func(t *testing.T) {
			g := gateOf(t, Config{MaxInFlight: 1, MaxWait: maxWait, MaxWaiting: int(min(maxWait, 1000))})
			var inTime atomic.Int64
			for range asked {
				ctx, cancel := context.WithTimeout(context.Background(), patience)
				go func() {
					defer cancel()
					began := time.Now()
					l, err := g.Acquire(ctx, Call{})
					if err != nil {
						return
					}
					if ctx.Err() != nil {
						t.Error("served a caller that has given up")
					}
					time.Sleep(work)
					l.Release()
					if time.Since(began) <= patience {
						inTime.Add(1)
					}
				}()
				time.Sleep(every)
			}
			time.Sleep(time.Minute)
			n = int(inTime.Load())
		})
		return n
	}
	long, short, none := useful(5*time.Second), useful(100*time.Millisecond), useful(0)
	t.Logf("useful answers of at most %d: %d with a long wait, %d with a short one, %d without", asked/2, long, short, none)
	if short < asked/2*95/100 || none < asked/2/2 {
		t.Errorf("a short wait gave %d useful answers, none %d; want nearly all of %d, and half", short, none, asked/2)
	}
	if long > short/4 {
		t.Errorf("a long wait gave %d useful answers, a short one %d: the case is no longer what it was", long, short)
	}
}

// QU-20: one client opens and closes 50 requests while a call runs for 3 s. None of
// them ever starts, and who comes later waits for the one that runs, not for them.
// A wait ends with the caller's own deadline.
func TestQU20RequestsThatOpenAndClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := gateOf(t, Config{MaxInFlight: 1, MaxWait: 10 * time.Second, MaxWaiting: 60})
		l := take(t, g, 1)
		time.AfterFunc(3*time.Second, l.Release)
		var gone []*attempt
		for range 50 {
			ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
			gone = append(gone, attemptAt(ctx, g, Call{}))
			time.Sleep(10 * time.Millisecond)
			cancel()
		}
		within := func(d time.Duration) context.Context {
			ctx, cancel := context.WithTimeout(context.Background(), d)
			context.AfterFunc(ctx, cancel)
			return ctx
		}
		hasty := queued(t, within(2*time.Second), g, Call{}) // before the call that runs ends
		user := queued(t, within(5*time.Second), g, Call{})
		later := queued(t, within(5*time.Second), g, Call{})
		time.Sleep(2 * time.Second)
		hasty.refused(t, RejectedDeadline, 2*time.Second)
		time.Sleep(500 * time.Millisecond)
		user.granted(t, 2500*time.Millisecond)
		time.Sleep(time.Hour) // user never ends; later has 5 s, though the gate would wait 10
		later.refused(t, RejectedDeadline, 5*time.Second)
		for _, at := range gone {
			at.refused(t, Canceled, 10*time.Millisecond)
		}
		shows(t, g, "1/1, accepted 2, deadline 2, canceled 50")
	})
}
