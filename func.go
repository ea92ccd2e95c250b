package forebay

import (
	"context"
	"net/http"
)

// Do runs f with a slot of g, and returns f's error, or why there was no slot and
// f did not run. The slot is given back when f returns or panics: as
// [OutcomeAborted] after a panic or if the caller has left, else as [OutcomeDone].
// f's context carries the lease, so f may call Do on the same gate again. What is
// known of the call comes from [WithCall].
//
// f runs without a slot under a context from [Exempt], and outside HTTP requests
// with [Config.OnlyInRequests].
func Do(ctx context.Context, g *Gate, f func(context.Context) error) error {
	if g.passes(ctx) {
		return f(ctx)
	}
	lease, err := g.Acquire(ctx, callFrom(ctx))
	if err != nil {
		return err
	}
	if g.settings.Load().CancelLost {
		lost, stop := lease.Context(ctx)
		defer stop()
		ctx = lost
	}
	outcome := OutcomeAborted
	defer func() { lease.ReleaseAs(outcome) }()
	err = f(WithLease(ctx, lease))
	outcome = outcomeOf(ctx)
	return err
}

// Func returns f with a gate in front of it: the @concurrent_limit decorator of other
// frameworks. See [Do].
func Func[A, R any](g *Gate, f func(context.Context, A) (R, error)) func(context.Context, A) (R, error) {
	if g == nil || f == nil {
		panic("forebay: Func of a nil gate or function")
	}
	return func(ctx context.Context, arg A) (result R, err error) {
		err = Do(ctx, g, func(ctx context.Context) error {
			result, err = f(ctx, arg)
			return err
		})
		return result, err
	}
}

// passes reports whether work under ctx runs without a slot.
func (g *Gate) passes(ctx context.Context) bool {
	if isExempt(ctx) {
		return true
	}
	return g.settings.Load().OnlyInRequests && ctx.Value(http.ServerContextKey) == nil
}
