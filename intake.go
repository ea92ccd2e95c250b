package forebay

import (
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"
)

// Intake sees to what comes in for requests that do not run. It takes in the rest of
// the bodies of those that are refused, so that the refusal arrives, and reads ahead
// the bodies of those that wait, so that it shows when their callers leave; and it
// counts the bytes that it holds meanwhile. One of them serves any number of gates and
// servers; gates without one share that of the process, with the defaults that
// [IntakeConfig] names. Make one with [NewIntake]; it is safe for concurrent use and
// has nothing to close.
type Intake struct {
	config  IntakeConfig
	promise *Bytes // of DiscardTotal
	servers stopping
	look    time.Duration // lookTime

	discarding atomic.Int64
	discarded  atomic.Int64
	cut        atomic.Uint64
	slow       atomic.Uint64
}

// IntakeConfig says how much an [Intake] takes in. The zero value is the default that
// each comment names.
type IntakeConfig struct {
	// Bytes counts the memory that is held, and bounds it. Nil: 64 MiB of its own.
	Bytes *Bytes

	// ReadAhead is how much of one body is read ahead while its request waits in line, so
	// that it shows when the caller leaves. Larger bodies are not. 0 means 64 KiB; below 0
	// nothing is read ahead.
	ReadAhead int64

	// Discard is how much of the rest of a refused request's body is taken in and thrown
	// away. A client that writes all of its request before it reads sees the refusal only
	// if somebody takes in what it writes; else it sees a broken connection. 0 means
	// 64 MiB.
	Discard int64
	// DiscardTime bounds that in time. 0 means 2 s.
	DiscardTime time.Duration
	// DiscardTotal bounds what is being thrown away at one time, over all connections: what
	// is to be taken in of each counts from the start. Beyond it connections are closed
	// at once. 0 means 1 GiB.
	DiscardTotal int64
}

const (
	defaultIntakeBytes  = 64 << 20
	defaultReadAhead    = 64 << 10
	defaultDiscard      = 64 << 20
	defaultDiscardTime  = 2 * time.Second
	defaultDiscardTotal = 1 << 30
	longestDiscardTime  = time.Minute
)

// NewIntake returns an intake, or every mistake in the configuration at once.
func NewIntake(c IntakeConfig) (*Intake, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	return newIntake(c), nil
}

func newIntake(c IntakeConfig) *Intake {
	if c.Bytes == nil {
		c.Bytes = NewBytes(defaultIntakeBytes)
	}
	c.ReadAhead = orElse(c.ReadAhead, defaultReadAhead)
	c.Discard = orElse(c.Discard, defaultDiscard)
	c.DiscardTime = orElse(c.DiscardTime, defaultDiscardTime)
	c.DiscardTotal = orElse(c.DiscardTotal, defaultDiscardTotal)
	return &Intake{config: c, promise: NewBytes(c.DiscardTotal), look: lookTime}
}

func orElse[T comparable](v, otherwise T) T {
	var zero T
	if v == zero {
		return otherwise
	}
	return v
}

func (c *IntakeConfig) validate() error {
	var errs []error
	for _, f := range []struct {
		name  string
		value int64
	}{{"Discard", c.Discard}, {"DiscardTotal", c.DiscardTotal}} {
		if f.value < 0 {
			errs = append(errs, fmt.Errorf("forebay: IntakeConfig.%s is %d; it must be 0 (the default) or more bytes", f.name, f.value))
		}
	}
	if c.DiscardTime < 0 || c.DiscardTime > longestDiscardTime {
		errs = append(errs, fmt.Errorf("forebay: IntakeConfig.DiscardTime is %v; it must be 0 (the default) to %v", c.DiscardTime, longestDiscardTime))
	}
	return errors.Join(errs...)
}

// processIntake serves the gates that have none of their own.
var processIntake = newIntake(IntakeConfig{})

// intake returns the one of a gate.
func (s *settings) intake() *Intake {
	if s.Intake != nil {
		return s.Intake
	}
	return processIntake
}

// IntakeStats is one picture of an [Intake].
type IntakeStats struct {
	Bytes      BytesStats `json:"bytes"`      // memory
	Discarding int64      `json:"discarding"` // connections whose body is being thrown away
	Promised   BytesStats `json:"promised"`   // what is to be taken in of them; the limit is DiscardTotal
	Discarded  int64      `json:"discarded"`  // bytes thrown away so far
	Cut        uint64     `json:"cut"`        // refused bodies whose end was not waited for: too long, too slow, too many
	Slow       uint64     `json:"slow"`       // bodies that came too slowly, by the rules of [Upload]
}

// Stats returns what the intake holds and has done.
func (in *Intake) Stats() IntakeStats {
	return IntakeStats{
		Bytes: in.config.Bytes.Stats(), Discarding: in.discarding.Load(), Promised: in.promise.Stats(),
		Discarded: in.discarded.Load(), Cut: in.cut.Load(), Slow: in.slow.Load(),
	}
}

// inServer reports whether a server of net/http's has called the handler: only there
// are connections that must be seen to.
func inServer(r *http.Request) *http.Server {
	s, _ := r.Context().Value(http.ServerContextKey).(*http.Server)
	return s
}
