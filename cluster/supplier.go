package cluster

import (
	"context"
	"runtime"
	"sync"
	"time"

	"example.com/forebay/internal/feed"
)

// supplier feeds one gate: it is the lock, the goroutine and the timers around its loan.
type supplier struct {
	cluster *Cluster
	gate    string
	key     string
	channel string        // on which the ledger speaks to this instance alone
	wake    chan struct{} // there is something to say
	gone    chan struct{} // closed when the ledger has heard that the gate leaves
	done    chan struct{} // closed when run has returned
	ctx     context.Context
	end     context.CancelFunc // of run

	mu    sync.Mutex // guards what follows, and is never held while anything is waited for
	loan  *loan
	state Change   // as last reported
	seen  pictured // as Stats last saw it
}

// Poke says that there is something to say.
func (s *supplier) Poke() {
	select {
	case s.wake <- struct{}{}:
	default: // it was said
	}
}

// SetLimit puts a limit in force for the whole cluster.
func (s *supplier) SetLimit(n int, lasts time.Duration) {
	now := clock()
	s.change(func(l *loan) { l.setLimit(now, n, lasts) })
}

// Configured says that the gate is configured afresh.
func (s *supplier) Configured(limit int) { s.change(func(l *loan) { l.configured(limit) }) }

func (s *supplier) hear(n News) { s.change(func(l *loan) { l.hear(n) }) }

func (s *supplier) hearing(on bool) {
	now := clock()
	s.change(func(l *loan) { l.hearing(now, on) })
}

// probe says that the store was heard of.
func (s *supplier) probe() {
	now := clock()
	s.change(func(l *loan) { l.probe(now) })
	s.Poke()
}

func (s *supplier) leave() { s.change((*loan).leave) }

func (s *supplier) late() {
	now := clock()
	s.change(func(l *loan) { l.late(now) })
}

// change has f change the loan, and what follows from it done.
func (s *supplier) change(f func(l *loan)) {
	s.mu.Lock()
	f(s.loan)
	poked := s.loan.poked
	s.unlock()
	if poked {
		s.Poke()
	}
}

// run is the exchanger: the only one who speaks to the ledger of the gate. What is to be
// said meanwhile goes with its next exchange.
func (s *supplier) run(ctx context.Context) {
	defer close(s.done)
	alarm := time.NewTimer(time.Hour)
	defer alarm.Stop()
	late := time.AfterFunc(time.Hour, s.late)
	defer late.Stop()
	for ctx.Err() == nil {
		r, at := s.step()
		if s.over() {
			return
		}
		if r != nil {
			late.Reset(keepAfter)
			s.exchange(ctx, r)
			late.Stop()
			continue
		}
		wait := at.Sub(clock())
		if wait <= 0 {
			continue
		}
		alarm.Reset(wait)
		select {
		case <-s.wake:
			s.said()
		case <-alarm.C:
		case <-ctx.Done():
		}
	}
}

// step does what is due, with all that was said until now, and returns the request that
// is to be sent, or when the next step is.
func (s *supplier) step() (*Request, time.Time) {
	said := false
	select {
	case <-s.wake:
		said = true
	default:
	}
	s.mu.Lock()
	defer s.unlock()
	l := s.loan
	l.nudged = l.nudged || said
	return l.step(clock())
}

// over reports whether a gate that leaves is done with the ledger.
func (s *supplier) over() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.loan.gone || s.loan.inVain()
}

func (s *supplier) said() {
	s.mu.Lock()
	s.loan.nudged = true
	s.mu.Unlock()
}

// exchange sends r and hears the answer.
func (s *supplier) exchange(ctx context.Context, r *Request) {
	ctx, cancel := context.WithTimeout(ctx, exchangeBudget)
	defer cancel()
	rep, err := s.cluster.config.Store.Exchange(ctx, r)
	if s.heard(r, rep, err) {
		for _, other := range s.cluster.all() {
			other.probe()
		}
	}
	if rep.Granted > r.Granted {
		goAhead()
	}
}

const (
	// yields is how often the exchanger lets others run who have been let in. At 256 callers
	// that keep no slots three save a quarter of the exchanges that one leaves, and more
	// save no more.
	yields = 3
	// yieldFor ends that where others want the processors as well: a round trip takes as
	// long.
	yieldFor = 100 * time.Microsecond
)

// goAhead lets the calls go first that were let in: those that end by now, and those that
// come after them, are said with the next exchange instead of the one after it.
func goAhead() {
	began := clock()
	for n := 0; n < yields && clock().Sub(began) < yieldFor; n++ {
		runtime.Gosched()
	}
}

// heard takes what became of an exchange. It reports whether the store is back.
func (s *supplier) heard(r *Request, rep Reply, err error) (back bool) {
	now := clock()
	s.mu.Lock()
	defer s.unlock()
	if err != nil {
		s.loan.failed(now, err)
		return false
	}
	back = s.loan.store.open()
	s.loan.replied(now, r, rep)
	if s.loan.deafened(now) {
		s.cluster.subscriber.changed()
	}
	return back && !s.loan.store.open()
}

// unlock gives up the lock, and has reported how the gate goes on now if that is news.
func (s *supplier) unlock() {
	l := s.loan
	if l.gone {
		select {
		case <-s.gone:
		default:
			close(s.gone)
		}
	}
	if mode := l.mode(); mode != s.state.Mode || l.store.open() != s.state.Away {
		s.state = Change{
			Gate: s.gate, Mode: mode, Was: s.state.Mode, Away: l.store.open(), Error: l.store.text, Epoch: l.epoch,
		}
		s.cluster.changed(s.state)
	}
	s.mu.Unlock()
}

var _ feed.Supplier = (*supplier)(nil)
