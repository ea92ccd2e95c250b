package forebay

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func drawNone(int) int          { return 0 }
func drawMost(n int) int        { return n - 1 }
func years(n int) time.Duration { return time.Duration(n) * 365 * 24 * time.Hour }

// RJ-04: whole seconds, rounded up, at least one and at most the bound.
func TestRJ04RetryAfterWholeSeconds(t *testing.T) {
	for _, c := range []struct {
		ahead       time.Duration
		least, most int // without and with all of the random part
	}{
		{0, 1, 3},
		{time.Nanosecond, 1, 3},
		{time.Millisecond, 1, 3},
		{200 * time.Millisecond, 1, 3},
		{999 * time.Millisecond, 1, 3},
		{time.Second, 1, 3},
		{time.Second + 1, 2, 4},
		{1001 * time.Millisecond, 2, 4},
		{2 * time.Second, 2, 4},
		{10 * time.Second, 10, 15},
		{-5 * time.Second, 1, 3},
		{25 * time.Second, 25, 30},
		{years(10), 30, 30},
		{1<<63 - 1, 30, 30},
		{-1 << 63, 1, 3},
	} {
		if got := (RetryAfter{}).seconds(c.ahead, drawNone); got != c.least {
			t.Errorf("%v ahead: least %d, want %d", c.ahead, got, c.least)
		}
		if got := (RetryAfter{}).seconds(c.ahead, drawMost); got != c.most {
			t.Errorf("%v ahead: most %d, want %d", c.ahead, got, c.most)
		}
	}
}

func TestRetryAfterBounds(t *testing.T) {
	const sec = time.Second
	for _, c := range []struct {
		bounds      RetryAfter
		ahead       time.Duration
		least, most int
	}{
		{RetryAfter{Min: 10 * sec}, 0, 10, 15}, // the random part goes on top of Min
		{RetryAfter{Min: 10 * sec}, 20 * sec, 20, 30},
		{RetryAfter{Min: 9*sec + 1}, 0, 10, 15},
		{RetryAfter{Max: 5 * sec}, 0, 1, 3},
		{RetryAfter{Max: 5 * sec}, 4 * sec, 4, 5},
		{RetryAfter{Max: 5 * sec}, time.Hour, 5, 5},
		{RetryAfter{Max: 1}, time.Hour, 1, 1},
		{RetryAfter{Min: time.Minute}, 0, 60, 60}, // Max follows Min
		{RetryAfter{Min: 2 * sec, Max: 3 * sec}, 0, 2, 3},
		{RetryAfter{Max: 24 * time.Hour}, years(1), 86400, 86400},
		{RetryAfter{Fixed: 7 * sec}, time.Hour, 7, 7},
		{RetryAfter{Fixed: 1}, time.Hour, 1, 1},
		{RetryAfter{Fixed: 6*sec + 1}, 0, 7, 7},
	} {
		if got := c.bounds.seconds(c.ahead, drawNone); got != c.least {
			t.Errorf("%+v, %v ahead: least %d, want %d", c.bounds, c.ahead, got, c.least)
		}
		if got := c.bounds.seconds(c.ahead, drawMost); got != c.most {
			t.Errorf("%+v, %v ahead: most %d, want %d", c.bounds, c.ahead, got, c.most)
		}
	}
}

// The random part is uniform on 0 to max(2, base/2) and never takes away.
func TestRetryAfterSpread(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, c := range []struct {
		bounds RetryAfter
		ahead  time.Duration
		base   int
		spread int
	}{
		{RetryAfter{}, 0, 1, 2},
		{RetryAfter{}, 4 * time.Second, 4, 2},
		{RetryAfter{}, 12 * time.Second, 12, 6},
		{RetryAfter{Min: 10 * time.Second}, 0, 10, 5},
	} {
		const draws = 30_000
		seen := map[int]int{}
		for range draws {
			seen[c.bounds.seconds(c.ahead, rng.IntN)]++
		}
		for s := c.base; s <= c.base+c.spread; s++ {
			share := float64(seen[s]) / draws * float64(c.spread+1)
			if share < 0.9 || share > 1.1 {
				t.Errorf("%v ahead: %d s comes %.2f times as often as it should", c.ahead, s, share)
			}
			delete(seen, s)
		}
		if len(seen) > 0 {
			t.Errorf("%v ahead: also %v", c.ahead, seen)
		}
	}
}

// What is sent: a positive decimal number, and not the same one to everybody.
func TestRJ04RetryAfterOnTheAnswer(t *testing.T) {
	g, err := New(Config{MaxInFlight: 1})
	if err != nil {
		t.Fatal(err)
	}
	occupy(t, g)
	h := g.Wrap(http.HandlerFunc(echoOK))
	seen := map[string]int{}
	for range 300 {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
		if got := w.Header()["Retry-After"]; len(got) != 1 {
			t.Fatalf("Retry-After %q", got)
		}
		seen[w.Header().Get("Retry-After")]++
	}
	if len(seen) != 3 || seen["1"] == 0 || seen["2"] == 0 || seen["3"] == 0 {
		t.Errorf("sent %v, want 1, 2 and 3", seen)
	}
}

// A long fixed value, which no shared header holds, is sent as it is.
func TestRetryAfterBeyondTheSharedHeaders(t *testing.T) {
	for _, seconds := range []int{1, 119, 120, 86400} {
		g := httpGate(t, Config{MaxInFlight: 1, Refusal: Refusal{RetryAfter: RetryAfter{Fixed: time.Duration(seconds) * time.Second}}})
		if got := refusedWith(g, RejectedBusy).Header().Get("Retry-After"); got != fmt.Sprint(seconds) {
			t.Errorf("%d s: %q", seconds, got)
		}
	}
}

// busyFor runs calls of the given hold through a gate of one slot, one after the
// other, in a bubble: so fast do they depart.
func busyFor(g *Gate, calls int, hold time.Duration) {
	var all sync.WaitGroup
	for range 2 { // one runs, one waits: the gate is full all the time
		all.Go(func() {
			for range calls / 2 {
				lease, err := g.Acquire(context.Background(), Call{})
				if err != nil {
					panic(err)
				}
				time.Sleep(hold)
				lease.Release()
			}
		})
	}
	all.Wait()
}

// retries returns the least and the most that a number of refusals send.
func retries(g *Gate, n int) (least, most int) {
	least = 1 << 30
	for range n {
		s, _ := strconv.Atoi(refusedWith(g, RejectedBusy).Header().Get("Retry-After"))
		least, most = min(least, s), max(most, s)
	}
	return least, most
}

// inLine puts n callers into the line of a full gate.
func inLine(g *Gate, n int) (leave func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	for range n {
		all.Go(func() {
			lease, _ := g.Acquire(ctx, Call{})
			lease.Release()
		})
	}
	return func() { cancel(); all.Wait() }
}

// Retry-After follows how fast calls depart while the gate is full: the line of
// three and the caller himself take four holds. Those who are refused with him are sent to
// later seconds, up to the last.
func TestRetryAfterFollowsTheDepartureRate(t *testing.T) {
	for _, c := range []struct {
		hold        time.Duration
		bounds      RetryAfter
		least, most int
	}{
		{100 * time.Millisecond, RetryAfter{}, 1, 30},
		{time.Second, RetryAfter{}, 4, 30},
		{3 * time.Second, RetryAfter{}, 12, 30},
		{10 * time.Second, RetryAfter{}, 30, 30}, // 40 s, but 30 s is the most
		{10 * time.Second, RetryAfter{Max: 100 * time.Second}, 40, 100},
		{10 * time.Second, RetryAfter{Min: 50 * time.Second, Max: 100 * time.Second}, 50, 100},
	} {
		synctest.Test(t, func(t *testing.T) {
			g, err := New(Config{MaxInFlight: 1, MaxWait: time.Hour, MaxWaiting: 3, Refusal: Refusal{RetryAfter: c.bounds}})
			if err != nil {
				t.Fatal(err)
			}
			if least, most := retries(g, 100); c.bounds == (RetryAfter{}) && (least != 1 || most != 3) {
				t.Errorf("before anything is known: %d to %d s", least, most)
			}
			busyFor(g, 40, c.hold)
			lease, _ := g.TryAcquire(Call{})
			leave := inLine(g, 3)
			synctest.Wait()
			if least, most := retries(g, 400); least != c.least || most != c.most {
				t.Errorf("holds of %v, %+v: %d to %d s, want %d to %d", c.hold, c.bounds, least, most, c.least, c.most)
			}
			leave()
			lease.Release()
		})
	}
}

// A gate without a line that tracks knows its rate too, once it refuses.
func TestRetryAfterOfATrackedGateWithoutALine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, err := New(Config{MaxInFlight: 1, Track: true})
		if err != nil {
			t.Fatal(err)
		}
		for range 40 {
			lease, _ := g.TryAcquire(Call{})
			g.TryAcquire(Call{})
			time.Sleep(8 * time.Second)
			lease.Release()
		}
		if least, most := retries(g, 400); least != 8 || most != 30 {
			t.Errorf("%d to %d s, want 8 to 30", least, most)
		}
	})
}
