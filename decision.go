package forebay

import (
	"net/http"

	"example.com/forebay/internal/admit"
)

// Decision is what a gate did with one call. Every call gets exactly one.
type Decision uint8

// The decisions. The zero value, Undecided, is that of an [Event] that reports a
// release, and of nothing else.
const (
	Undecided        Decision = iota
	Accepted                  // the call runs, at once or after a wait
	Exempted                  // the call runs without a slot: its route is exempt
	RejectedBusy              // no slot and no place in line, or hardly a chance to be served in time
	RejectedTimeout           // its patience ended in line
	RejectedDeadline          // the caller's own deadline passed before it could run
	RejectedCaller            // its caller has as much of the gate as one may have
	RejectedTooLarge          // its cost is above the configured maximum: waiting cannot cure that
	RejectedDraining          // the gate is draining
	RejectedStore             // the cluster's store is away, or did not answer in time
	RejectedShed              // gave up its place in line for a call of a higher lane
	Canceled                  // the caller left before it could run
	decisions                 // how many there are
)

var decisionNames = [decisions]string{
	"undecided", "accepted", "exempt", "rejected_busy", "rejected_timeout",
	"rejected_deadline", "rejected_caller", "rejected_too_large", "rejected_draining", "rejected_store",
	"rejected_shed", "canceled",
}

// String returns the word that logs, metrics and refusals use: "rejected_busy".
func (d Decision) String() string {
	if d < decisions {
		return decisionNames[d]
	}
	return "unknown"
}

// Refused reports whether d turned a caller away who was still there.
func (d Decision) Refused() bool { return d >= RejectedBusy && d <= RejectedShed }

// Status returns the HTTP status of the answer that d gives by itself: 200 when
// the call runs, 503 for a refusal that waiting cures, 429 if it is the caller who has
// too much, 413 for one that waiting does not cure, 499 (which is logged and never
// sent) when the caller left.
func (d Decision) Status() int {
	switch d {
	case RejectedCaller:
		return http.StatusTooManyRequests
	case RejectedTooLarge:
		return http.StatusRequestEntityTooLarge
	case Canceled:
		return StatusClientClosedRequest
	case Accepted, Exempted, Undecided:
		return http.StatusOK
	}
	return http.StatusServiceUnavailable
}

// StatusClientClosedRequest is what logs show for a caller that left before it
// was answered. It is never sent.
const StatusClientClosedRequest = 499

// verdictDecisions says which decision each verdict of the machine is.
var verdictDecisions = [admit.Verdicts]Decision{
	admit.Granted:  Accepted,
	admit.Busy:     RejectedBusy,
	admit.Timeout:  RejectedTimeout,
	admit.Deadline: RejectedDeadline,
	admit.TooLarge: RejectedTooLarge,
	admit.Capped:   RejectedCaller,
	admit.Draining: RejectedDraining,
	admit.Canceled: Canceled,
	admit.Store:    RejectedStore,
	admit.Shed:     RejectedShed,
}
