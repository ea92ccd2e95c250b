package forebay

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"runtime"
	"runtime/debug"
	"sync/atomic"
	"time"
)

// ErrTimeout is what [Do] and [Func] return when [Config.MaxRun] is over: the work goes
// on, and keeps its slot until it ends. It is a context.DeadlineExceeded too.
var ErrTimeout error = timeoutError{}

type timeoutError struct{}

// Error says what happened.
func (timeoutError) Error() string { return "forebay: timed out; the work may still run" }

// Is makes errors.Is(ErrTimeout, context.DeadlineExceeded) true.
func (timeoutError) Is(target error) bool { return target == context.DeadlineExceeded }

// Do runs f with a slot of g, and returns f's error, or why there was no slot and
// f did not run. The slot is given back when f returns or panics: as
// [OutcomeAborted] after a panic or if the caller has left, else as [OutcomeDone].
// f's context carries the lease, so f may call Do on the same gate again. What is
// known of the call comes from [WithCall]. With [Config.MaxRun] it returns
// [ErrTimeout] when that is over, and f runs in a goroutine of its own.
//
// f runs without a slot under a context from [Exempt], and outside HTTP requests
// with [Config.OnlyInRequests].
func Do(ctx context.Context, g *Gate, f func(context.Context) error) error {
	_, err := doWith(ctx, g, f, run)
	return err
}

func run(ctx context.Context, f func(context.Context) error) (struct{}, error) {
	return struct{}{}, f(ctx)
}

// Func returns f with a gate in front of it: the @concurrent_limit decorator of other
// frameworks. See [Do].
func Func[A, R any](g *Gate, f func(context.Context, A) (R, error)) func(context.Context, A) (R, error) {
	if g == nil || f == nil {
		panic("forebay: Func of a nil gate or function")
	}
	return func(ctx context.Context, arg A) (R, error) { return doWith(ctx, g, arg, f) }
}

func doWith[A, R any](ctx context.Context, g *Gate, arg A, f func(context.Context, A) (R, error)) (result R, err error) {
	if g.passes(ctx) {
		return f(ctx, arg)
	}
	lease, err := g.Acquire(ctx, callFrom(ctx))
	if err != nil {
		return result, err
	}
	s := g.settings.Load()
	if s.MaxRun > 0 && lease != (Lease{}) { // else the slot is an outer call's, and may end before f
		return doWithin(ctx, g, lease, s, arg, f)
	}
	outcome := OutcomeAborted
	defer func() { lease.ReleaseAs(outcome) }()
	if s.CancelLost {
		lost, stop := lease.Context(ctx)
		defer stop()
		ctx = lost
	}
	result, err = f(WithLease(ctx, lease), arg)
	outcome = outcomeOf(ctx)
	return result, err
}

// passes reports whether work under ctx runs without a slot.
func (g *Gate) passes(ctx context.Context) bool {
	if isExempt(ctx) {
		return true
	}
	return g.settings.Load().OnlyInRequests && ctx.Value(http.ServerContextKey) == nil
}

// work is a call of f in a goroutine of its own. Either it ends in time, and its caller
// takes what came of it, or the caller gives it up, and it gives its slot back itself:
// who is first to say so decides.
type work[R any] struct {
	gate   *Gate
	lease  Lease
	ended  chan struct{}
	given  atomic.Bool // up by the caller, or over in time
	result R
	err    error
	panic  *Panicked // nil: none
	exited bool      // the goroutine ended without returning or panicking
}

func doWithin[A, R any](ctx context.Context, g *Gate, lease Lease, s *settings, arg A, f func(context.Context, A) (R, error)) (result R, err error) {
	lost := func() {}
	if s.CancelLost {
		ctx, lost = lease.Context(ctx)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, s.MaxRun, ErrTimeout)
	w := &work[R]{gate: g, lease: lease, ended: make(chan struct{})}
	timer := time.NewTimer(s.MaxRun)
	defer timer.Stop()
	go func() {
		defer lost()
		defer cancel()
		defer w.end(ctx)
		w.exited = true
		w.result, w.err = f(WithLease(ctx, lease), arg)
		w.exited = false
	}()
	select {
	case <-w.ended:
	case <-timer.C:
		g.late.Add(1) // before anybody can take it off
		if w.given.CompareAndSwap(false, true) {
			return result, ErrTimeout
		}
		g.late.Add(-1)
		<-w.ended
	}
	switch {
	case w.panic != nil && w.panic.Value == http.ErrAbortHandler:
		panic(http.ErrAbortHandler) // means something by itself
	case w.panic != nil:
		panic(w.panic)
	case w.exited:
		runtime.Goexit()
	}
	return w.result, w.err
}

// end gives the slot back, however the work ended.
func (w *work[R]) end(ctx context.Context) {
	if p := recover(); p != nil {
		w.panic, w.exited = &Panicked{Value: p, Stack: debug.Stack()}, false
	}
	outcome := outcomeOf(ctx)
	late := !w.given.CompareAndSwap(false, true)
	switch {
	case late:
		outcome = OutcomeOverloaded
	case w.panic != nil || w.exited:
		outcome = OutcomeAborted
	}
	w.lease.ReleaseAs(outcome)
	if late {
		w.gate.late.Add(-1)
		if w.panic != nil { // nobody is there to be told, and the process need not end by it
			log.Printf("forebay: gate %q: work that had timed out: %v", w.gate.name, w.panic)
		}
	}
	close(w.ended)
}

// Panicked is what [Do] panics with when work in a goroutine of its own has panicked: the
// value and the stack of where it happened. http.ErrAbortHandler comes as it is.
type Panicked struct {
	Value any    // of the panic
	Stack []byte // of the goroutine that panicked
}

// Error returns the value and the stack.
func (p *Panicked) Error() string { return fmt.Sprintf("%v\n\n%s", p.Value, p.Stack) }

// Unwrap returns the value if it is an error.
func (p *Panicked) Unwrap() error {
	err, _ := p.Value.(error)
	return err
}
