package rivals

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// TestRivals checks that what is measured limits at all: never more holders than
// slots, every caller is served in the end, and one that leaves is let go.
func TestRivals(t *testing.T) {
	address := startServer(t)
	for i, r := range All() {
		t.Run(r.Name, func(t *testing.T) {
			c := Config{Addr: address, Name: "limit" + strconv.Itoa(i), Limit: 3, Callers: 8, MaxWait: time.Minute, Poll: time.Millisecond}
			first, second := open(t, r, c), open(t, r, c)
			release, err := first.Acquire(t.Context()) // the token list is made by one, as two would make it twice
			if err != nil {
				t.Fatal(err)
			}
			release()
			if most := crowd(t, first, second); most > 3 {
				t.Errorf("%d holders at once, want at most 3", most)
			}
			leave(t, first)
		})
	}
}

func TestFind(t *testing.T) {
	for _, r := range All() {
		if got, ok := Find(r.Name); !ok || got.Kind != r.Kind || got.Client != r.Client {
			t.Errorf("Find(%q) = %v, %v", r.Name, got, ok)
		}
	}
	if _, ok := Find("etcd"); ok {
		t.Error("Find found what is not there")
	}
}

func open(t *testing.T, r Rival, c Config) Semaphore {
	g, err := r.Open(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { g.Close() })
	return g
}

// crowd lets sixteen callers take slots again and again, and returns how many had
// one at the same time.
func crowd(t *testing.T, gates ...Semaphore) int64 {
	var now, most atomic.Int64
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			for range 25 {
				release, err := gates[i%len(gates)].Acquire(t.Context())
				if err != nil {
					t.Error(err)
					return
				}
				for n := now.Add(1); ; {
					if m := most.Load(); n <= m || most.CompareAndSwap(m, n) {
						break
					}
				}
				now.Add(-1)
				release()
			}
		})
	}
	wg.Wait()
	return most.Load()
}

// leave fills the gate and checks that a caller with little time goes without.
func leave(t *testing.T, g Semaphore) {
	for range 3 {
		release, err := g.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer release()
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := g.Acquire(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Acquire of a full gate: %v, want the end of the context", err)
	}
}
