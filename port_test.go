package forebay

import (
	"context"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"example.com/forebay/internal/feed"
)

type hasty struct{ source }

func (h *hasty) Attach(g feed.Gate) (feed.Supplier, error) {
	g.Alone(feed.Alone{Slots: 1})
	g.Renew(time.Now().Add(-1))
	g.Lend(1, nil) // finds that the time is over, which the supplier is to be told
	return h.source.Attach(g)
}

func TestSourceSpeaksAsItIsAttached(t *testing.T) {
	h := &hasty{}
	gateOf(t, Config{MaxInFlight: 1, Cluster: h})
	if h.pokes != 1 {
		t.Errorf("%d pokes", h.pokes)
	}
}

func TestPokes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, s := clusteredOf(t, Config{MaxInFlight: 4, MaxWait: time.Second}, 1)
		poked := func(want int, after string) {
			t.Helper()
			if s.pokes != want {
				t.Errorf("%d pokes after %s, want %d", s.pokes, after, want)
			}
			s.pokes = 0
		}
		poked(0, "nothing")
		l := take(t, g, 1)
		poked(0, "a call that found its slot here")
		a, b := waits(g, Call{}), waits(g, Call{})
		poked(1, "two calls without")
		s.Look(0, 9)
		l.Release()
		poked(0, "a slot that went to the next one here")
		s.Return(true)
		(<-a).(Lease).Release()
		poked(1, "a slot that goes back")
		if v := s.Look(2, 9); v.Back != 1 || v.Slots != 0 {
			t.Errorf("%+v", v)
		}
		waits(g, Call{})
		poked(1, "one more without")
		s.Look(2, 0)
		poked(1, "a call that found no room in the view")
		s.Look(3, 1)
		s.Renew(time.Now().Add(-1))
		waits(g, Call{})
		poked(1, "a call after the end")
		if len(b) > 0 {
			t.Error("a call runs that has no slot")
		}
		s.Look(9, 9)
		s.Lapse()
		poked(0, "a lapse, of which it knows")
	})
}

func TestLook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, s := clusteredOf(t, Config{MaxInFlight: 9, MaxWait: time.Second}, 1)
		held := take(t, g, 1)
		ctx, leave := context.WithCancel(context.Background())
		for i, cost := range []int{1, 1, 2, 1, 1} {
			c := context.Background()
			if i == 1 || i == 3 {
				c = ctx
			}
			go func() { _, _ = g.Acquire(c, Call{Cost: cost}) }()
			synctest.Wait()
		}
		go g.TryAcquire(Call{})
		synctest.Wait()
		want := feed.View{
			Slots: 1, InFlight: 1, Waiting: 6, Peak: 1,
			Arrived: []feed.Run{{First: 1, Calls: 2, Cost: 1}, {First: 3, Calls: 1, Cost: 2}, {First: 4, Calls: 2, Cost: 1}, {First: 6, Calls: 1, Cost: 1, Ask: true}},
		}
		if v := s.Look(0, 9); !reflect.DeepEqual(v, want) {
			t.Errorf("%+v\nwant %+v", v, want)
		}
		want.Arrived = want.Arrived[:2]
		if v := s.Look(0, 2); !reflect.DeepEqual(v, want) {
			t.Errorf("%+v\nwant %+v", v, want)
		}
		leave()
		synctest.Wait()
		want.Waiting, want.Arrived = 4, []feed.Run{{First: 6, Calls: 1, Cost: 1, Ask: true}}
		want.Standing = []feed.Span{{First: 1, Last: 1}, {First: 3, Last: 3}, {First: 5, Last: 5}}
		if v := s.Look(5, 9); !reflect.DeepEqual(v, want) {
			t.Errorf("%+v\nwant %+v", v, want)
		}
		want.Standing = []feed.Span{{First: 1, Last: 1}, {First: 3, Last: 5}}
		if v := s.Look(5, 2); !reflect.DeepEqual(v, want) {
			t.Errorf("%+v\nwant %+v", v, want)
		}
		s.Renumber()
		want.Standing = nil
		want.Arrived = []feed.Run{{First: 7, Calls: 1, Cost: 1}, {First: 8, Calls: 1, Cost: 2}, {First: 9, Calls: 1, Cost: 1}, {First: 10, Calls: 1, Cost: 1, Ask: true}}
		if v := s.Look(6, 9); !reflect.DeepEqual(v, want) {
			t.Errorf("%+v\nwant %+v", v, want)
		}
		held.Release()
	})
}

func TestPeak(t *testing.T) {
	g, s := clusteredOf(t, Config{MaxInFlight: 9}, 9)
	for range 3 {
		a, b := take(t, g, 1), take(t, g, 3)
		a.Release()
		b.Release()
		if v := s.Look(0, 9); v.Peak != 4 {
			t.Errorf("%+v", v)
		}
		if v := s.Look(0, 9); v.Peak != 0 {
			t.Errorf("%+v", v)
		}
	}
	var leases []Lease
	for range 5 {
		leases = append(leases, take(t, g, 1))
	}
	for _, l := range leases {
		l.Release()
	}
	if v := s.Look(0, 9); v.Peak != 4 && v.Peak != 5 { // the first was given by the machine
		t.Errorf("%+v", v)
	}
}

func TestLookForTheOldest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, s := clusteredOf(t, Config{MaxInFlight: 9, Track: true}, 9)
		oldest := func(want time.Duration) {
			t.Helper()
			if v := s.Look(0, 9); v.Oldest != want {
				t.Errorf("the oldest runs for %v, want %v", v.Oldest, want)
			}
		}
		oldest(0)
		time.Sleep(99 * time.Millisecond)
		oldest(0)
		time.Sleep(time.Second)
		l := take(t, g, 1)
		time.Sleep(time.Second)
		oldest(time.Second)
		time.Sleep(99 * time.Millisecond)
		oldest(1099 * time.Millisecond)
		l.Release()
		oldest(1099 * time.Millisecond)
		time.Sleep(time.Millisecond)
		oldest(0)

		untracked, s := clusteredOf(t, Config{MaxInFlight: 9}, 9)
		take(t, untracked, 1)
		time.Sleep(time.Second)
		if v := s.Look(0, 9); v.Oldest != 0 {
			t.Errorf("the oldest of a gate that does not track runs for %v", v.Oldest)
		}
	})
}
