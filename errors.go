package forebay

import (
	"context"
	"errors"
	"fmt"
)

// ErrRejected is what every refusal is: errors.Is(err, ErrRejected). A caller
// that left is not refused; its error is the context's.
var ErrRejected = errors.New("forebay: rejected")

// RejectedError says which gate refused a call and why. [Gate.Acquire] returns
// one for every refusal. It is made once for each gate and decision, so that a
// refusal allocates nothing: it tells nothing of the single call; how long that
// waited is in its [Event].
type RejectedError struct {
	gate     *Gate
	decision Decision
	text     string
}

func newRejectedError(g *Gate, d Decision) *RejectedError {
	return &RejectedError{gate: g, decision: d, text: fmt.Sprintf("forebay: gate %q: %s", g.name, d)}
}

// Error returns one line with the gate's name and the decision.
func (e *RejectedError) Error() string { return e.text }

// Gate returns the gate that refused.
func (e *RejectedError) Gate() *Gate { return e.gate }

// Decision returns why.
func (e *RejectedError) Decision() Decision { return e.decision }

// Is makes errors.Is(err, ErrRejected) true, and errors.Is(err,
// context.DeadlineExceeded) where the caller's own deadline was the reason.
func (e *RejectedError) Is(target error) bool {
	return target == ErrRejected ||
		target == context.DeadlineExceeded && e.decision == RejectedDeadline
}

// leftError is the error of a caller that left: errors.Is(err,
// context.Canceled), and whatever cause the context was given.
type leftError struct{ cause error }

func leftBecause(ctx context.Context) error {
	cause := causeOf(ctx)
	if cause == context.Canceled {
		return cause
	}
	return &leftError{cause: cause}
}

// causeOf returns why a context ended. One of somebody's own making may have ended
// without a reason.
func causeOf(ctx context.Context) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return context.Canceled
}

// Error returns what made the caller leave.
func (e *leftError) Error() string { return "forebay: the caller left: " + e.cause.Error() }

// Unwrap makes both the cause and context.Canceled findable.
func (e *leftError) Unwrap() []error { return []error{context.Canceled, e.cause} }
