package admit

// Verdict is what the machine answers to an arrival, at once or later.
type Verdict uint8

// The verdicts. The zero value, Queued, means that none was given yet.
const (
	Queued   Verdict = iota // in line: the verdict comes later
	Granted                 // runs now
	Busy                    // no slot, and no place in line or hardly a chance there
	Timeout                 // its patience ended in line
	Deadline                // the caller's own deadline passed before it could run
	TooLarge                // costs more than the gate may ever have
	Draining                // the gate is draining
	Canceled                // the caller left
	Capped                  // its caller has as much as one may have
	Store                   // the ledger that lends slots is away, or did not answer
	Shed                    // gave up its place in line for a call that goes before it
	Verdicts                // how many there are
)

var verdictNames = [Verdicts]string{
	"queued", "granted", "busy", "timeout", "deadline", "too_large", "draining", "canceled", "capped", "store", "shed",
}

// String returns the word that scripts use for v.
func (v Verdict) String() string {
	if v < Verdicts {
		return verdictNames[v]
	}
	return "unknown"
}
