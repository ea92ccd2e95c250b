package burst

import (
	"context"
	"net/http"
	"time"
)

// run is one run of a plan. Everything in it but the tally belongs to the goroutine
// of Run.
type run struct {
	Plan
	client   *http.Client
	start    time.Time
	arrivals *arrivals
	tally    *tally
	inFlight int
	ended    chan *arrival // nil, or a refused call that comes back at its due time
}

// Run sends the calls of a plan and returns what became of them. When ctx ends
// before, it returns what it has, and the error of ctx; calls that were cut off by
// that count as never sent.
func Run(ctx context.Context, p Plan) (Result, error) {
	p, err := p.withDefaults()
	if err != nil {
		return Result{}, err
	}
	transport := newTransport(p.MaxOpen)
	defer transport.CloseIdleConnections()
	r := &run{
		Plan: p, client: &http.Client{Transport: transport},
		start: time.Now(), arrivals: newArrivals(p.Classes, p.Seed, p.Duration),
		tally: newTally(p), ended: make(chan *arrival, p.MaxOpen),
	}
	r.send(ctx)
	for r.inFlight > 0 { // every goroutine tells its end
		<-r.ended
		r.inFlight--
	}
	r.tell()
	return r.tally.result(), ctx.Err()
}

// newTransport keeps every connection that it may open, and uses no proxy.
func newTransport(open int) *http.Transport {
	return &http.Transport{MaxIdleConns: open, MaxIdleConnsPerHost: open, DisableCompression: true}
}

// send sends the calls when they are due, until the last has ended.
func (r *run) send(ctx context.Context) {
	tick := time.NewTicker(progressEach)
	defer tick.Stop()
	due := time.NewTimer(0)
	defer due.Stop()
	for {
		at, more := r.arrivals.peek()
		if !more && r.inFlight == 0 {
			return
		}
		var next <-chan time.Time // nil, which waits for ever, when no call is left
		if more {
			due.Reset(at - time.Since(r.start))
			next = due.C
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			r.tell()
		case refused := <-r.ended:
			r.inFlight--
			if refused != nil {
				r.arrivals.comeBack(*refused)
			}
		case <-next:
			r.sendDue(ctx)
		}
	}
}

// sendDue sends everything that is due by now.
func (r *run) sendDue(ctx context.Context) {
	now := time.Since(r.start)
	for at, more := r.arrivals.peek(); more && at <= now; at, more = r.arrivals.peek() {
		a := r.arrivals.pop()
		if r.inFlight >= r.MaxOpen {
			r.tally.unsent(a)
			continue
		}
		r.inFlight++
		go func() { r.ended <- r.call(ctx, a) }()
	}
}

func (r *run) tell() {
	if r.Progress != nil {
		r.Progress(Progress{
			Elapsed: time.Since(r.start), Duration: r.Duration,
			InFlight: r.inFlight, Classes: r.tally.counts(),
		})
	}
}
