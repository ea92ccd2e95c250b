package main

import (
	"context"
	"slices"
	"sync"
	"testing/synctest"
	"time"

	"example.com/forebay/internal/simulate"
)

// module is a limiter of somebody's, as a program would use it.
type module struct {
	// acquire returns what gives the slot back, and false if there was none. It is called
	// in a goroutine of its own where it may wait.
	acquire func(ctx context.Context) (release func(late bool), ok bool)
	limit   func() int
	waits   bool               // acquire may wait
	room    func() bool        // acquire would not wait and not refuse; nil: nobody knows
	busy    func(part float64) // is told how much the backend has to do; nil: it does not ask
}

// bubble is a module in a bubble of testing/synctest: its clock is the simulator's.
type bubble struct {
	module
	began  time.Time
	leave  map[uint64]context.CancelFunc // of those who wait
	held   map[uint64]func(late bool)    // of those who run
	moment chan struct{}                 // there is an answer

	mu      sync.Mutex // guards what follows
	granted map[uint64]func(late bool)
	answers []simulate.Answered
}

func newBubble(m module) *bubble {
	return &bubble{
		module: m, began: time.Now(), moment: make(chan struct{}, 1),
		leave: map[uint64]context.CancelFunc{}, held: map[uint64]func(bool){}, granted: map[uint64]func(bool){},
	}
}

// Ask implements [simulate.Foreign].
func (b *bubble) Ask(call uint64, busy float64) simulate.Answer {
	if b.busy != nil {
		b.busy(busy)
	}
	if !b.waits || b.room != nil && b.room() {
		release, ok := b.acquire(context.Background())
		if !ok {
			return simulate.Refused
		}
		b.held[call] = release
		return simulate.Admitted
	}
	ctx, cancel := context.WithCancel(context.Background())
	go b.await(ctx, call)
	synctest.Wait()
	b.mu.Lock()
	i := slices.IndexFunc(b.answers, func(a simulate.Answered) bool { return a.Call == call })
	answer := simulate.Waits
	if i >= 0 {
		answer = b.answers[i].Answer
		b.answers = slices.Delete(b.answers, i, i+1)
		b.keep(call)
	}
	b.mu.Unlock()
	if i >= 0 {
		cancel()
	} else {
		b.leave[call] = cancel
	}
	return answer
}

// await acquires a slot, however long that takes.
func (b *bubble) await(ctx context.Context, call uint64) {
	release, ok := b.acquire(ctx)
	a := simulate.Answered{Call: call}
	b.mu.Lock()
	if ok {
		a.Answer = simulate.Admitted
		b.granted[call] = release
	}
	b.answers = append(b.answers, a)
	b.mu.Unlock()
	select {
	case b.moment <- struct{}{}:
	default: // somebody has said so
	}
}

// keep moves a slot that was granted to those that are held. It expects mu held.
func (b *bubble) keep(call uint64) {
	if release := b.granted[call]; release != nil {
		b.held[call] = release
		delete(b.granted, call)
	}
}

// Leave implements [simulate.Foreign].
func (b *bubble) Leave(call uint64) {
	b.leave[call]()
	synctest.Wait()
}

// Release implements [simulate.Foreign].
func (b *bubble) Release(call uint64, late bool) {
	release := b.held[call]
	delete(b.held, call)
	release(late)
	if b.waits {
		synctest.Wait()
	}
}

// Wait implements [simulate.Foreign].
func (b *bubble) Wait(until time.Duration) time.Duration {
	left := until - time.Since(b.began)
	switch {
	case left <= 0 || b.answered():
	case len(b.leave) == 0:
		time.Sleep(left)
	default:
		timer := time.NewTimer(left)
		for waits := true; waits && !b.answered(); {
			select {
			case <-timer.C:
				waits = false
			case <-b.moment:
			}
			synctest.Wait()
		}
		timer.Stop()
	}
	return time.Since(b.began)
}

func (b *bubble) answered() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.answers) > 0
}

// Answers implements [simulate.Foreign]. Those of one moment come in the order of the
// calls.
func (b *bubble) Answers() []simulate.Answered {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := b.answers
	b.answers = nil
	slices.SortFunc(all, func(x, y simulate.Answered) int { return int(x.Call) - int(y.Call) })
	for _, a := range all {
		b.keep(a.Call)
		b.leave[a.Call]()
		delete(b.leave, a.Call)
	}
	return all
}

// Limit implements [simulate.Foreign].
func (b *bubble) Limit() int { return b.limit() }

// end lets those go who still wait, so that the bubble can end.
func (b *bubble) end() {
	for _, cancel := range b.leave {
		cancel()
	}
	synctest.Wait()
	b.Answers()
	for _, release := range b.held {
		release(true)
	}
	synctest.Wait()
}
