package forebay

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"example.com/forebay/internal/admit"
	"example.com/forebay/internal/feed"
)

// source is a feed.Source that does what a test tells it.
type source struct {
	feed.Gate
	err   error
	pokes int
	told  []string
	stats feed.Stats
}

func (s *source) Attach(g feed.Gate) (feed.Supplier, error) { s.Gate = g; return supplier{s}, s.err }

// supplier is a source's other side.
type supplier struct{ s *source }

func (p supplier) Poke() { p.s.pokes++ }
func (p supplier) SetLimit(n int, d time.Duration) {
	p.s.told = append(p.s.told, fmt.Sprint("set ", n, " ", d))
}
func (p supplier) Configured(n int)  { p.s.told = append(p.s.told, fmt.Sprint("configured ", n)) }
func (p supplier) Stats() feed.Stats { return p.s.stats }

// clusteredOf returns a gate, and what feeds it; n slots are lent for an hour.
func clusteredOf(t testing.TB, c Config, n int) (*Gate, *source) {
	t.Helper()
	s := &source{}
	c.Cluster = s
	g := gateOf(t, c)
	s.Renew(time.Now().Add(time.Hour))
	s.Lend(n, nil)
	t.Cleanup(func() { // whoever still waits would outlive a bubble
		g.lock()
		g.machine.Drain(clock())
		g.unlock()
	})
	return g, s
}

// waits starts a call in a bubble, and returns where its lease, or why there is none,
// comes out.
func waits(g *Gate, call Call) <-chan any {
	out := make(chan any, 1)
	go func() {
		if l, err := g.Acquire(context.Background(), call); err != nil {
			out <- err.(*RejectedError).Decision()
		} else {
			out <- l
		}
	}()
	synctest.Wait()
	return out
}

func TestClusteredGateUsesWhatItIsLent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, s := clusteredOf(t, Config{MaxInFlight: 4, MaxWait: time.Second}, 0)
		a := waits(g, Call{})
		b := waits(g, Call{})
		if len(a)+len(b) > 0 {
			t.Fatal("a call runs that has no slot")
		}
		s.Lend(1, nil)
		first := (<-a).(Lease)
		shows(t, g, "1/4, waiting 1, accepted 1")
		first.Release()
		second := (<-b).(Lease)
		second.Release()
		if n, _ := s.Take(5); n != 1 {
			t.Errorf("took %d idle slots, want 1", n)
		}
		if _, ok := g.TryAcquire(Call{}); ok {
			t.Error("a call runs on a slot that was taken")
		}
		s.Lend(9, nil)
		for range 4 {
			take(t, g, 1)
		}
		if _, ok := g.TryAcquire(Call{}); ok {
			t.Error("the limit is exceeded where more is lent")
		}
	})
}

func TestAttachFails(t *testing.T) {
	cause := errors.New("no such cluster")
	g, err := New(Config{Name: "reports", MaxInFlight: 1, Cluster: &source{err: cause}})
	if g != nil || !errors.Is(err, cause) || !strings.Contains(err.Error(), `"reports"`) {
		t.Errorf("New = %v, %v", g, err)
	}
	if _, err := New(Config{MaxInFlight: 1, Cluster: &source{}, Limiter: &calm{}}); err == nil || !strings.Contains(err.Error(), "Limiter and Cluster") {
		t.Errorf("New with a limiter: %v", err)
	}
}

type calm struct{}

func (calm) Observe(o *Observation) int { return o.Limit }

// hasty is a source that speaks before it has heard who listens.
// The supplier is told once that there is something to see, until it looks.
// The view has the line by numbers: what arrived, and what still stands.
// The peak counts what ran between two looks, whoever counted it.
// The view says how long the oldest call runs, looked up now and then.
// Who may not wait asks; the answer, or that none comes, is the decision.
func TestAsking(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, s := clusteredOf(t, Config{MaxInFlight: 4}, 0)
		begin := time.Now()
		if _, err := g.Acquire(context.Background(), Call{}); err.(*RejectedError).Decision() != RejectedStore || time.Since(begin) != 50*time.Millisecond {
			t.Errorf("%v after %v", err, time.Since(begin))
		}
		if _, ok := g.TryAcquire(Call{}); ok || time.Since(begin) != 100*time.Millisecond {
			t.Errorf("%v after %v", ok, time.Since(begin))
		}
		no, yes := waits(g, Call{}), waits(g, Call{})
		s.Answered(3)
		synctest.Wait()
		if d := <-no; d != RejectedBusy || len(yes) != 0 {
			t.Errorf("%v, and %d", d, len(yes))
		}
		s.Lend(1, nil)
		(<-yes).(Lease).Release()
		shows(t, g, "0/4, accepted 1, busy 1, store 2")
	})
}

// A chain asks as well, if one of its gates may not wait, and keeps nothing if the
// answer is no.
func TestChainAsks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		local := gateOf(t, Config{Name: "local", MaxInFlight: 2})
		g, s := clusteredOf(t, Config{Name: "g", MaxInFlight: 4, MaxWait: time.Second}, 0)
		c, err := NewChain(local, g)
		if err != nil {
			t.Fatal(err)
		}
		out := make(chan error)
		for _, answer := range []func(){func() { s.Lend(1, nil) }, func() { s.Answered(2) }, func() {}} {
			go func() {
				_, err := c.Acquire(context.Background(), Call{})
				out <- err
			}()
			synctest.Wait()
			answer()
			if err := <-out; err != nil && err.(*RejectedError).Gate() != g {
				t.Error(err)
			}
		}
		shows(t, local, "1/2, accepted 1")
		shows(t, g, "1/4, busy 1, store 1")
	})
}

// joined returns a call that has joined the line and does not look up yet.
func joined(g *Gate, ctx context.Context) *waiting {
	w := &waiting{woken: make(chan struct{}, 1), gone: ctx.Done()}
	w.Owner = w
	now, a := clock(), admit.Arrival{Claim: admit.Claim{Cost: 1}}
	g.lock()
	g.machine.Arrive(now, a)
	g.machine.Join(now, a, &w.Waiter)
	g.unlock()
	return w
}

// A grant whose slot is withdrawn before its caller has looked up is none.
func TestGrantMeetsLapse(t *testing.T) {
	for name, meets := range map[string]func(s *source){
		"lapse": func(s *source) {
			s.Lend(1, nil)
			s.Lapse()
		},
		"together without a term": func(s *source) {
			s.Alone(feed.Alone{Slots: 1})
			s.Together()
		},
	} {
		g, s := clusteredOf(t, Config{MaxInFlight: 1, MaxWait: time.Hour}, 0)
		ctx := context.Background()
		w := joined(g, ctx)
		meets(s)
		if ans := g.wait(ctx, w, clock(), nil); ans.verdict != admit.Store {
			t.Errorf("%s: %v", name, ans.verdict)
		}
		shows(t, g, "0/1, store 1")
	}
}

// A grant that comes as its caller leaves goes back to the ledger while others wait.
func TestGrantMeetsLeaver(t *testing.T) {
	g, s := clusteredOf(t, Config{MaxInFlight: 1, MaxWait: time.Hour}, 0)
	s.Return(true)
	ctx, leave := context.WithCancel(context.Background())
	w := joined(g, ctx)
	s.Lend(1, nil)
	leave()
	if ans := g.wait(ctx, w, clock(), nil); ans.verdict != admit.Canceled {
		t.Errorf("%v", ans.verdict)
	}
	if v := s.Look(1, 9); v.Back != 1 || v.InFlight != 0 || s.pokes == 0 {
		t.Errorf("%+v after %d pokes", v, s.pokes)
	}
}

// While the ledger is away the gate goes on as it is told.
func TestAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, s := clusteredOf(t, Config{MaxInFlight: 4, MaxWait: time.Second}, 1)
		lost := take(t, g, 1)
		a, b := waits(g, Call{}), waits(g, Call{})
		s.Lapse()
		s.Alone(feed.Alone{Slots: 2})
		shared := (<-a).(Lease)
		time.Sleep(999 * time.Millisecond)
		s.Alone(feed.Alone{Refuse: true})
		if d := <-b; d != RejectedStore {
			t.Error(d)
		}
		if d := <-waits(g, Call{}); d != RejectedStore {
			t.Error(d)
		}
		s.Renew(time.Now().Add(time.Second))
		s.Lend(3, nil)
		s.Together()
		later := take(t, g, 1)
		if _, ok := g.TryAcquire(Call{}); ok {
			t.Error("what runs without a slot is not covered first")
		}
		for _, l := range []Lease{lost, shared, later} {
			l.Release()
		}
		shows(t, g, "0/4, accepted 3, store 3")
		if n := g.Stats().Granted; n != 3 {
			t.Errorf("%d leases were given to 3 calls", n)
		}
	})
}

// A gate alone refuses without the lock, as one by itself does, and as soon as there is
// room does not.
func TestAloneRefusesWithoutTheLock(t *testing.T) {
	g, s := clusteredOf(t, Config{MaxInFlight: 4}, 0)
	for _, how := range []struct {
		alone feed.Alone
		want  Decision
	}{{feed.Alone{Slots: 0}, RejectedBusy}, {feed.Alone{Refuse: true}, RejectedStore}} {
		s.Alone(how.alone)
		g.mu.Lock() // whoever takes it would wait
		if _, err := g.Acquire(context.Background(), Call{}); err.(*RejectedError).Decision() != how.want {
			t.Error(err)
		}
		g.mu.Unlock()
		s.Alone(feed.Alone{Slots: 1})
		take(t, g, 1).Release()
	}
}

// What is lent may be used once it is said until when.
func TestSlotsNeedATerm(t *testing.T) {
	s := &source{}
	g := gateOf(t, Config{MaxInFlight: 4, Cluster: s})
	s.Lend(1, nil)
	if _, ok := g.TryAcquire(Call{}); ok {
		t.Error("a call runs on a slot without a term")
	}
	s.Renew(time.Now().Add(time.Hour))
	take(t, g, 1).Release()
}

// Together without a Renew lends nothing.
func TestTogetherNeedsATerm(t *testing.T) {
	g, s := clusteredOf(t, Config{MaxInFlight: 4}, 0)
	s.Alone(feed.Alone{Slots: 1})
	take(t, g, 1).Release()
	s.Lend(2, nil)
	s.Together()
	if g.machine.Slots() != 0 {
		t.Errorf("%d slots without a term", g.machine.Slots())
	}
	s.Renew(time.Now().Add(time.Hour))
	take(t, g, 2).Release()
}

func TestClusteredDrain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, s := clusteredOf(t, Config{MaxInFlight: 4, MaxWait: time.Second}, 1)
		l := take(t, g, 1)
		a := waits(g, Call{})
		s.Return(true)
		over := make(chan error)
		go func() { over <- g.Drain(context.Background()) }()
		if d := <-a; d != RejectedDraining {
			t.Error(d)
		}
		s.Lend(1, nil) // for the call that was in line
		l.Release()
		if err := <-over; err != nil {
			t.Error(err)
		}
		if v := s.Look(1, 9); v.Back != 2 || v.Slots != 0 {
			t.Errorf("%+v", v)
		}
	})
}

// A cluster's limit is set everywhere by hand, and followed here.
func TestClusteredLimit(t *testing.T) {
	g, s := clusteredOf(t, Config{MaxInFlight: 4}, 9)
	says := func(limit int, told ...string) {
		t.Helper()
		if got := g.Stats().Capacity; got != limit || !reflect.DeepEqual(s.told, told) {
			t.Errorf("limit %d, told %q; want %d, %q", got, s.told, limit, told)
		}
		s.told = nil
	}
	says(4)
	if err := g.SetLimit(6); err != nil {
		t.Error(err)
	}
	says(6, "set 6 0s")
	if err := g.SetClusterLimit(2, time.Minute); err != nil {
		t.Error(err)
	}
	says(2, "set 2 1m0s")
	if err := g.SetClusterLimit(-5, 0); err != nil {
		t.Error(err)
	}
	says(4, "set -1 0s")
	if g.SetClusterLimit(1, -1) == nil || g.SetClusterLimit(1<<20, 0) == nil || gateOf(t, Config{MaxInFlight: 1}).SetClusterLimit(1, 0) == nil {
		t.Error("a wrong limit is no error")
	}
	says(4)

	// A lower limit is in force at once, a higher one when the cluster says so.
	for _, c := range []struct{ configured, inForce int }{{8, 4}, {3, 3}} {
		if err := g.Reconfigure(Config{MaxInFlight: c.configured}); err != nil {
			t.Error(err)
		}
		says(c.inForce, fmt.Sprint("configured ", c.configured))
	}
	s.SetLimit(7)
	says(7)
	if s.Limit() != 3 || g.Config().Cluster != feed.Source(s) {
		t.Errorf("configured are %d, of %v", s.Limit(), g.Config().Cluster)
	}
	take(t, g, 7).Release()
	s.SetLimit(0)
	if _, ok := g.TryAcquire(Call{}); ok {
		t.Error("a closed gate admits")
	}
}

// A run with a cluster is written down as well.
func TestClusteredScript(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		g, s := clusteredOf(t, Config{MaxInFlight: 2, Script: &out}, 1)
		l := take(t, g, 1)
		asks := waits(g, Call{})
		s.Answered(1)
		<-asks
		s.Lapse()
		s.Alone(feed.Alone{Refuse: true})
		s.Together()
		l.Release()
		synctest.Wait()
		var again strings.Builder
		if err := admit.Play(strings.NewReader(out.String()), &again); err != nil || again.String() != out.String() || !strings.Contains(out.String(), "ledger") {
			t.Errorf("%v\n%s\nplays as\n%s", err, out.String(), again.String())
		}
	})
}

func TestCachedPairAllocatesNothing(t *testing.T) {
	for _, track := range []bool{false, true} {
		g, _ := clusteredOf(t, Config{MaxInFlight: 4, Track: track}, 4)
		pair := func() {
			l, err := g.Acquire(context.Background(), Call{})
			if err != nil {
				t.Error(err)
			}
			l.Release()
		}
		pair()
		if n := testing.AllocsPerRun(100, pair); n != 0 {
			t.Errorf("track %v: %v allocations", track, n)
		}
		if g.slots.open.Load() == 0 {
			t.Error("nothing is lent to callers without the lock")
		}
	}
}
