// Package burst sends calls to a backend by the clock, whether or not earlier ones
// were answered, as callers that know nothing of each other do, and counts what
// became of them. It needs the standard library only.
//
// The same plan with the same seed sends the same calls at the same moments, so
// that two runs differ only by what stands between.
package burst

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"slices"
	"time"
)

// Request is one call to send.
type Request struct {
	// Method is GET when it is empty.
	Method string
	// Path is what follows the base URL, with the query.
	Path string
	// Body is sent as JSON unless it is empty.
	Body string
}

// Class is one kind of calls.
type Class struct {
	// Name stands in the result and the table.
	Name string
	// Rate is how many calls arrive in a second, in the mean. The time between two
	// is drawn from an exponential distribution.
	Rate float64
	// Deadline is the patience of these callers where it is not the plan's. 0: as
	// in the plan.
	Deadline time.Duration
	// Next draws a call.
	Next func(*rand.Rand) Request
}

// Plan says what to send.
type Plan struct {
	// URL is where, without a path: http://127.0.0.1:8080
	URL string
	// Classes are what, and how often.
	Classes []Class
	// Duration is how long calls arrive. Run returns when the last has ended.
	Duration time.Duration
	// Seed is what the calls and their moments are drawn from.
	Seed uint64
	// Deadline is how long a caller waits for the whole answer, from the moment at
	// which its call was due. 0: 2 s.
	Deadline time.Duration
	// HonourRetryAfter lets a refused caller come back once, when its Retry-After
	// says so. Run then takes up to 5 s longer.
	HonourRetryAfter bool
	// MaxOpen bounds the goroutines and the connections. A call that is due while
	// all are taken is counted as Unsent. 0: 2048.
	MaxOpen int
	// Progress is called every 250 ms from one goroutine, and once at the end; it
	// should return soon. Nil: nobody is told.
	Progress func(Progress)
}

const (
	defaultDeadline = 2 * time.Second
	defaultOpen     = 2048
	progressEach    = 250 * time.Millisecond
	linger          = 5 * time.Second // for callers that come back after the last arrival
)

// Progress is how far a run has come.
type Progress struct {
	Elapsed, Duration time.Duration
	InFlight          int // calls without an answer yet
	Classes           []Outcome
}

// withDefaults returns the plan with its defaults filled in, or every mistake.
func (p Plan) withDefaults() (Plan, error) {
	var errs []error
	wrong := func(bad bool, format string, args ...any) {
		if bad {
			errs = append(errs, fmt.Errorf("burst: "+format, args...))
		}
	}
	u, err := url.Parse(p.URL)
	wrong(err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https",
		"URL is %q; it must be like http://127.0.0.1:8080", p.URL)
	wrong(len(p.Classes) == 0, "no Classes; there is nothing to send")
	for _, c := range p.Classes {
		wrong(c.Deadline < 0, "the deadline of %q is %v; it must be 0 (the plan's) or more", c.Name, c.Deadline)
		wrong(!(c.Rate > 0 && c.Rate <= 1e6), "the rate of %q is %v; it must be above 0, and at most a million", c.Name, c.Rate)
		wrong(c.Next == nil, "class %q draws no calls; set Next", c.Name)
	}
	wrong(p.Duration <= 0, "Duration is %v; it must be above 0", p.Duration)
	wrong(p.Deadline < 0, "Deadline is %v; it must be 0 (%v) or more", p.Deadline, defaultDeadline)
	wrong(p.MaxOpen < 0, "MaxOpen is %d; it must be 0 (%d) or more", p.MaxOpen, defaultOpen)
	if p.Deadline == 0 {
		p.Deadline = defaultDeadline
	}
	if p.MaxOpen == 0 {
		p.MaxOpen = defaultOpen
	}
	p.Classes = slices.Clone(p.Classes)
	for i := range p.Classes {
		if p.Classes[i].Deadline == 0 {
			p.Classes[i].Deadline = p.Deadline
		}
	}
	return p, errors.Join(errs...)
}
