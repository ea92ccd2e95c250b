package proxy

import (
	"context"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"example.com/forebay"
)

// work is a request in net/http's transport until the head of its answer comes. It goes
// on in a goroutine of its own, so that the client can be told 504 while it does:
// closing the connection would end hardly any backend's work, and nobody would know any
// more when it ends. Either the answer begins in time, or the exchange gives the work
// up, with the slot: who is first to say so decides.
type work struct {
	exchange *exchange
	ctx      context.Context
	cancel   context.CancelCauseFunc
	unlink   func() bool   // from the exchange's context
	sent     chan struct{} // the request has gone out whole: the upstream's time begins
	ended    chan struct{}
	given    atomic.Bool        // up by the exchange, or ended in time
	kept     chan forebay.Lease // what was given with it
	remain   *remain            // while it goes on for nobody
	res      *http.Response
	err      error
}

// maxUnwanted is how much of an answer that nobody waits for is taken in, so that the
// connection can be used again. It ends the work if there is more.
const maxUnwanted = 256 << 10

// tooLate is what becomes of a request whose answer has not begun in time.
type tooLate struct{}

var (
	errTooLate error = tooLate{}
	errOver          = context.Canceled // of work that nobody counts any more
)

// Error says what happened.
func (tooLate) Error() string { return "proxy: the upstream has not begun to answer in time" }

// Timeout makes it a time-out, as net/http's own is.
func (tooLate) Timeout() bool { return true }

// Temporary is for net.Error alone.
func (tooLate) Temporary() bool { return true }

// timed sends requests to the upstream, and bounds the time until the answers begin.
type timed struct{ *Handler }

// RoundTrip sends one request.
func (t timed) RoundTrip(r *http.Request) (*http.Response, error) {
	x := exchangeOf(r)
	w := &work{
		exchange: x, ended: make(chan struct{}), sent: make(chan struct{}, 1), kept: make(chan forebay.Lease, 1),
	}
	w.ctx, w.cancel = context.WithCancelCause(context.WithoutCancel(r.Context()))
	w.unlink = context.AfterFunc(x, func() { w.cancel(context.Cause(x)) })
	x.work.Store(w)
	go w.run(r.WithContext(w.ctx))
	var late <-chan time.Time
	for {
		select {
		case <-w.ended:
			return w.res, w.err
		case <-w.sent: // again, if net/http tries once more
			timer := time.NewTimer(t.config.ResponseTimeout)
			defer timer.Stop()
			late = timer.C
		case <-late:
			return w.giveUp()
		}
	}
}

// run sends the request. If the work is given up meanwhile it goes on until the upstream
// has answered, and gives the slot back.
func (w *work) run(r *http.Request) {
	res, err := w.exchange.handler.transports.RoundTrip(r)
	if w.given.CompareAndSwap(false, true) {
		w.res, w.err = res, err
		close(w.ended)
		return
	}
	lease := <-w.kept
	if err == nil {
		discard(res)
		//mutate:equivalent what was not read to its end is canceled below
		_ = res.Body.Close()
	}
	//mutate:equivalent what was not read to its end is closed above; a timer that rings later does nothing
	w.cancel(nil)
	lease.ReleaseAs(forebay.OutcomeOverloaded)
	w.remain.leave()
}

// discard takes in an answer that nobody waits for. It does not close it: net/http's own
// body reads on to the end then.
func discard(res *http.Response) {
	if res.StatusCode != http.StatusSwitchingProtocols && !isEventStream(res.Header) {
		_, _ = io.CopyN(io.Discard, res.Body, maxUnwanted)
	}
}

// leave is giveUp for the lean transport, which has no goroutine for it before: it
// reports whether somebody waits for the answer on the connection.
func (x *exchange) leave(c *leanConn, r *http.Request) bool {
	remain := x.remain(c.cut)
	if remain == nil {
		return false
	}
	x.isLate = true
	lease := x.lease.TimedOut()
	c.rewind()
	_ = c.SetReadDeadline(clock().Add(x.handler.config.StillRunning))
	go func() {
		if res, err := c.receive(r, func(int, http.Header) {}); err == nil {
			discard(res)
		}
		_ = c.Close()
		lease.ReleaseAs(forebay.OutcomeOverloaded)
		remain.leave()
	}()
	return true
}

// remain counts work that goes on without the exchange, and can be ended by cut; nil: it
// may not, or there is no slot to keep.
func (x *exchange) remain(cut func()) *remain {
	if x.handler.config.StillRunning <= 0 || !x.lease.Live() {
		return nil
	}
	return x.handler.config.Remains.enter(cut)
}

// giveUp leaves the work to itself, with the slot, unless it has just ended. Without a
// slot there is nothing to count, and it is canceled.
func (w *work) giveUp() (*http.Response, error) {
	x := w.exchange
	if w.remain = x.remain(func() { w.cancel(errOver) }); w.remain == nil {
		w.cancel(errTooLate)
		<-w.ended
		if w.err == nil {
			//mutate:equivalent it was canceled above
			_ = w.res.Body.Close()
		}
		return nil, errTooLate
	}
	if !w.given.CompareAndSwap(false, true) {
		w.remain.leave()
		<-w.ended
		return w.res, w.err
	}
	w.unlink()
	x.isLate = true
	over := time.AfterFunc(x.handler.config.StillRunning, func() { w.cancel(errOver) })
	context.AfterFunc(w.ctx, func() { over.Stop() })
	w.kept <- x.lease.TimedOut()
	return nil, errTooLate
}

// Remains are what still runs at the upstream of requests that were answered 504. One of
// them serves any number of handlers. Make it with [NewRemains], and end it; it is safe
// for concurrent use.
type Remains struct {
	mu   sync.Mutex // guards what follows
	all  map[*remain]struct{}
	over bool
	gone sync.WaitGroup
}

// remain is one of them.
type remain struct {
	of  *Remains
	cut func() // ends it
}

// NewRemains returns one in which nothing is yet.
func NewRemains() *Remains { return &Remains{all: map[*remain]struct{}{}} }

// enter counts work that goes on; nil: it may not, as nobody is there to end it.
func (r *Remains) enter(cut func()) *remain {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.over {
		return nil
	}
	one := &remain{r, cut}
	r.all[one] = struct{}{}
	r.gone.Add(1)
	return one
}

// leave says that it has ended.
func (one *remain) leave() {
	one.of.mu.Lock()
	defer one.of.mu.Unlock()
	delete(one.of.all, one)
	one.of.gone.Done()
}

// Size returns how much still runs.
func (r *Remains) Size() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.all)
}

// End closes the connections of all that still runs, and waits until their slots are
// given back. Whatever is late afterwards is canceled at once.
func (r *Remains) End() {
	r.mu.Lock()
	r.over = true
	for one := range r.all {
		one.cut()
	}
	r.mu.Unlock()
	r.gone.Wait()
}
