//go:build linux

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// workerCommand makes this program a worker. The harness starts itself that way.
const workerCommand = "worker"

// worker is one process that shares the limit with others.
type worker struct {
	assignment
	tape     *tape
	resource *resource
	system   system
	requests atomic.Uint64
	resting  atomic.Bool
	finished chan struct{}   // closed when no new calls are to begin
	quit     context.Context // ends with SIGTERM
	callers  sync.WaitGroup
}

// runWorker reads its assignment and then its orders from in.
func runWorker(in io.Reader, out io.Writer) error {
	orders := bufio.NewReader(in)
	line, err := orders.ReadBytes('\n')
	if err != nil {
		return err
	}
	w := &worker{finished: make(chan struct{})}
	if err := json.Unmarshal(line, &w.assignment); err != nil {
		return err
	}
	quit, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	w.quit = quit
	if w.tape, err = newTape(w.Tape, w.Records); err != nil {
		return err
	}
	if w.resource, err = openResource(w.Resource); err != nil {
		return err
	}
	if w.Procs > 0 {
		runtime.GOMAXPROCS(w.Procs)
	}
	if w.system, err = openSystem(&w.assignment); err != nil {
		return err
	}
	w.begin()
	fmt.Fprintln(out, ready)
	w.obey(orders)
	return w.end()
}

// ready is what a worker says when its callers run.
const ready = "ready"

func (w *worker) begin() {
	for range w.Hogs {
		go burn()
	}
	go w.watchTimers()
	w.callers.Go(func() { w.call(0) })
	w.callers.Go(func() {
		for !w.Rush && w.tape.head.done.Load() == 0 && !w.ending() {
			time.Sleep(time.Millisecond)
		}
		for i := 1; i < w.Callers; i++ {
			w.callers.Go(func() { w.call(i) })
		}
	})
}

// ending says that no new calls are to begin.
func (w *worker) ending() bool {
	select {
	case <-w.finished:
		return true
	default:
		return w.quit.Err() != nil
	}
}

// obey follows orders until one of them, or SIGTERM, or the end of the harness, ends
// the worker.
func (w *worker) obey(in *bufio.Reader) {
	orders := make(chan order)
	go func() {
		defer close(orders)
		for {
			line, err := in.ReadBytes('\n')
			var o order
			if err != nil || json.Unmarshal(line, &o) != nil {
				return
			}
			orders <- o
		}
	}()
	defer close(w.finished)
	for {
		select {
		case <-w.quit.Done():
			return
		case o, ok := <-orders:
			switch {
			case !ok || o.Do == doFinish:
				return
			case o.Do == doClock:
				os.Setenv(clockVariable, fmt.Sprintf("%s %d", o.Clock, time.Since(origin.when)))
			case o.Do == doLimit:
				w.system.setLimit(o.Limit)
			default:
				w.resting.Store(o.Do == doRest)
			}
		}
	}
}

// end waits for the callers, for as long as any of them may take, and gives everything
// back. If some never come to an end, the tape shows which.
func (w *worker) end() error {
	all := make(chan struct{})
	go func() { w.callers.Wait(); close(all) }()
	select {
	case <-all:
	case <-time.After(w.Patience + w.Work.Long + w.Work.Hold + 5*time.Second):
		return errors.New("some calls never ended")
	}
	return w.system.close()
}

// call makes one call after the other.
func (w *worker) call(caller int) {
	random := rand.New(rand.NewPCG(uint64(w.Worker), uint64(caller)))
	for n := 0; !w.ending(); n++ {
		if w.resting.Load() || w.ebb() {
			time.Sleep(time.Millisecond)
			continue
		}
		w.one(caller, n, random)
	}
}

// ebb says whether it is time to rest between two waves. It goes by the machine's
// clock, so all workers swell together.
func (w *worker) ebb() bool {
	return w.Work.Waves > 0 && (int64(now())/int64(w.Work.Waves))%2 == 1
}

// one is one call from its beginning to its end.
func (w *worker) one(caller, n int, random *rand.Rand) {
	cost := 1
	if w.Work.Costs && n%5 == 4 {
		cost = 3
	}
	ctx, cancel, patience := w.quit, context.CancelFunc(func() {}), w.Patience
	if d := w.Work.Deadline; d > 0 && d < patience && n%2 == 1 {
		ctx, cancel = context.WithTimeout(w.quit, d)
		patience = d
	}
	defer cancel()
	r := record{caller: caller, cost: cost, lease: w.requests.Add(1)}
	w.note(r, started, 0, uint64(patience))
	g, how := w.system.acquire(ctx, cost)
	if how != done {
		if w.quit.Err() != nil {
			how = ended
		}
		w.note(r, refused, how, 0)
		time.Sleep(spread(random, 4*time.Millisecond))
		return
	}
	w.note(r, entered, 0, 0)
	how = w.hold(r, g, w.span(n, random))
	w.note(r, left, how, 0) // before it is given back
	g.release()
	if w.Work.Think > 0 {
		time.Sleep(spread(random, w.Work.Think))
	}
}

// span returns how long a call works.
func (w *worker) span(n int, random *rand.Rand) time.Duration {
	if w.Work.Long > 0 && n%10 == 9 {
		return spread(random, w.Work.Long)
	}
	return spread(random, w.Work.Hold)
}

// spread returns something between half and one and a half of d.
func spread(random *rand.Rand, d time.Duration) time.Duration {
	return d/2 + time.Duration(random.Int64N(int64(d)+1))
}

// hold works for as long as it takes, or until the lease is lost. With a fence it
// shows it to the resource, at the beginning, time and again, and at the end.
func (w *worker) hold(r record, g grip, length time.Duration) outcome {
	timer := time.NewTimer(length)
	defer timer.Stop()
	var again <-chan time.Time
	if len(g.fences) > 0 {
		ticker := time.NewTicker(5 * time.Millisecond)
		defer ticker.Stop()
		again = ticker.C
	}
	for {
		w.touch(r, g)
		select {
		case <-again:
		case <-timer.C:
			w.touch(r, g)
			return done
		case <-g.lost:
			w.touch(r, g)
			return lost
		case <-w.quit.Done():
			return ended
		}
	}
}

// touch shows the fences to the resource.
func (w *worker) touch(r record, g grip) {
	for _, f := range g.fences {
		r.at = now()
		accepted := w.resource.accept(f)
		if accepted && !f.seen {
			r.at = now() // the first time: not before it was accepted
			f.seen = true
		}
		k := rejected
		if accepted {
			k = touched
		}
		r.kind, r.how, r.number, r.value = k, 0, uint64(f.number), f.fence
		w.tape.write(r)
	}
}

func (w *worker) note(r record, k kind, how outcome, value uint64) {
	r.at, r.kind, r.how, r.value = now(), k, how, value
	w.tape.write(r)
}

// watchTimers notes when timers of this process ring late, and whoever they wake runs
// late: no gate in it can do better.
func (w *worker) watchTimers() {
	const pause, negligible = 5 * time.Millisecond, time.Millisecond
	rings := make(chan instant)
	go func() {
		for {
			due := now().add(pause)
			time.Sleep(pause)
			rings <- due
		}
	}()
	for due := range rings {
		if over := now().since(due); over > negligible {
			w.note(record{}, late, 0, uint64(over))
		}
	}
}

// burn keeps a processor busy.
func burn() {
	for x := uint64(1); ; x = x*6364136223846793005 + 1442695040888963407 {
		if x == 0 {
			fmt.Fprintln(os.Stderr, "the generator has a period of 2^64")
		}
	}
}
