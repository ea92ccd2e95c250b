// Command burst shows what a gate is for. It sends five times more calls than a
// backend can serve, once straight at it and once through a gate, and prints what
// became of them. It needs nothing and ends by itself:
//
//	go run ./examples/burst
package main

import (
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"sync/atomic"
	"time"

	"example.com/forebay"
)

const (
	connections = 8 // of the backend
	work        = 20 * time.Millisecond
	capacity    = connections * float64(time.Second) / float64(work) // calls a second
	patience    = 500 * time.Millisecond                             // after which a caller has no use for an answer
	// quiet and crowded are what is offered, in capacities. At exactly 1 no hiccup of
	// this machine would ever be worked off, and the picture would show those.
	quiet, crowded = 0.9, 5.0
)

func main() {
	flags := flag.NewFlagSet("burst", flag.ExitOnError)
	limit := flags.Int("limit", connections, "calls that the gate lets run at once")
	wait := flags.Duration("wait", 100*time.Millisecond, "how long a call may wait in line; 0: refuse at once")
	length := flags.Duration("for", 8*time.Second, "length of each of the two runs, at least 4s")
	_ = flags.Parse(os.Args[1:]) // exits by itself
	if err := run(*limit, *wait, max(*length, 4*time.Second)); err != nil {
		fmt.Fprintln(os.Stderr, "burst: error:", err)
		os.Exit(1)
	}
}

func run(limit int, wait, length time.Duration) error {
	gate, err := forebay.New(forebay.Config{Name: "reports", MaxInFlight: limit, MaxWait: wait})
	if err != nil {
		return err
	}
	fmt.Printf(opening, connections, work, capacity, quiet*capacity, quiet, length*3/8, crowded*capacity, crowded, patience)
	open, behind := newBackend(), newBackend()
	without := burst(open, open, length)
	fmt.Printf(halfway, limit, gate.Stats().MaxWaiting, wait)
	with := burst(gate.Wrap(behind), behind, length)
	report(without, with, gate.Stats())
	return check(gate.Stats(), with)
}

// check returns which of the gate's promises was broken.
func check(st forebay.Stats, with *tally) error {
	decided := int(st.Accepted + st.Rejected() + st.Canceled)
	switch {
	case with.most > int64(st.Capacity):
		return fmt.Errorf("the backend saw %d calls at once; the limit is %d", with.most, st.Capacity)
	case st.Calls != 0 || st.Granted != st.Released:
		return fmt.Errorf("%d leases given, %d given back, %d still out", st.Granted, st.Released, st.Calls)
	case st.Waiting != 0 || decided > with.sent || decided < with.sent-with.late: // one that got lost is late too
		return fmt.Errorf("%d calls sent, %d decided, %d in line", with.sent, decided, st.Waiting)
	}
	return nil
}

// burst serves handler on a free port of this machine while the callers call.
// Close waits for the handlers, so that every lease is back.
func burst(handler http.Handler, b *backend, length time.Duration) *tally {
	server := httptest.NewServer(handler)
	defer server.Close()
	t := newTally(length)
	t.call(server.URL+"/reports", b)
	t.most = b.most.Load()
	return t
}

// backend has a few connections and no bound on who comes in. Whoever finds none
// free stands around inside, and a crowd slows down those at work: locks are
// fought over, caches thrown out, memory fills up. It never notices that a caller
// has left.
type backend struct {
	free         chan time.Time // connections, each with the time when it became so
	inside, most atomic.Int64
	over         chan struct{} // closed when the run ends
}

func newBackend() *backend {
	b := &backend{free: make(chan time.Time, connections), over: make(chan struct{})}
	for range connections {
		b.free <- time.Time{}
	}
	return b
}

// ServeHTTP answers once the work is done.
func (b *backend) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	inside := b.inside.Add(1)
	defer b.inside.Add(-1)
	for most := b.most.Load(); inside > most && !b.most.CompareAndSwap(most, inside); {
		most = b.most.Load()
	}
	select {
	case begin := <-b.free:
		if now := time.Now(); now.Sub(begin) > work/4 {
			begin = now // otherwise the last call ended late by its timer, and this one makes up for it
		}
		crowd := max(0, b.inside.Load()-8*connections)
		end := begin.Add(work + work*time.Duration(crowd)/20)
		defer func() { b.free <- end }()
		select {
		case <-time.After(time.Until(end)):
			fmt.Fprintln(w, "a report")
			return
		case <-b.over:
		}
	case <-b.over:
	}
	http.Error(w, "the run is over", http.StatusInternalServerError)
}
