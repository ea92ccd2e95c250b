package forebay

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"

	"example.com/forebay/internal/admit"
)

// RetryAfter bounds the Retry-After of a gate's refusals, in whole seconds, rounded up.
// The zero value computes it, from 1 s to 30 s: the first second after the line of now in
// which there is room, at the measured departure rate, beside those who come for the
// first time and those who were told the same second. So a crowd comes back spread over
// as many seconds as it takes to serve it. While the rate is unknown, as in a gate that
// lets nobody wait and does not track, it is 1 s and a random part of up to 2 s. Every
// field is at most 24 h.
type RetryAfter struct {
	// Min is the least that is ever sent. 0 means 1 s: less makes callers return
	// before anything has changed.
	Min time.Duration
	// Max is the most that is ever sent, random part included. 0 means 30 s, or Min
	// if that is more: half of it calls back into long incidents, twice as long
	// loses callers to a gate that recovered meanwhile.
	Max time.Duration
	// Fixed sends just this, without a random part. 0: computed. A fixed value
	// brings the crowd back at once; it is for tests and for clients that need it.
	Fixed time.Duration
}

const (
	defaultRetryMin = 1
	defaultRetryMax = 30
	longestRetry    = 24 * time.Hour
)

func (ra RetryAfter) validate() (errs []error) {
	for _, f := range []struct {
		name  string
		value time.Duration
	}{{"Min", ra.Min}, {"Max", ra.Max}, {"Fixed", ra.Fixed}} {
		if f.value < 0 || f.value > longestRetry {
			errs = append(errs, fmt.Errorf("forebay: Refusal.RetryAfter.%s is %v; it must be 0 (the default) to %v", f.name, f.value, longestRetry))
		}
	}
	lo, hi := ra.bounds()
	if lo > hi {
		errs = append(errs, fmt.Errorf("forebay: Refusal.RetryAfter.Min is %d s, above its Max of %d s", lo, hi))
	}
	if ra.Fixed > 0 && (ra.Min > 0 || ra.Max > 0) {
		errs = append(errs, errors.New("forebay: Refusal.RetryAfter has Fixed and bounds; give one of them"))
	}
	return errs
}

func (ra RetryAfter) bounds() (lo, hi int) {
	lo, hi = admit.WholeSeconds(ra.Min), admit.WholeSeconds(ra.Max)
	if ra.Min == 0 {
		lo = defaultRetryMin
	}
	if ra.Max == 0 {
		hi = max(lo, defaultRetryMax)
	}
	return lo, hi
}

// seconds returns what to send when the line ahead would take that long (0: unknown) and
// nothing is known of others. random returns a uniform number in [0, n).
func (ra RetryAfter) seconds(ahead time.Duration, random func(n int) int) int {
	if ra.Fixed > 0 {
		return admit.WholeSeconds(ra.Fixed)
	}
	lo, hi := ra.bounds()
	return admit.RetryAfter(ahead, lo, hi, random)
}

// retryAfter returns what a refusal of a call in a lane sends now.
func (g *Gate) retryAfter(s *settings, lane string) int {
	ra := &s.Refusal.RetryAfter
	// A gate that lets nobody wait and does not track measures no departures, so the
	// lock would be taken for nothing.
	if ra.Fixed > 0 || s.MaxWait == 0 && !s.track {
		return ra.seconds(0, rand.IntN)
	}
	lo, hi := ra.bounds()
	now := clock()
	g.lock()
	defer g.unlock()
	return g.machine.Appoint(now, g.machine.Lane(lane), lo, hi, rand.IntN)
}

// retryHeaders are header values made once, so that a refusal allocates none of
// them. Capacity equals length: whoever appends gets a copy.
var retryHeaders = func() (h [120][]string) {
	for i := range h {
		h[i] = []string{strconv.Itoa(i)}
	}
	return h
}()

func setRetryAfter(h http.Header, seconds int) {
	if seconds < len(retryHeaders) {
		h["Retry-After"] = retryHeaders[seconds]
		return
	}
	h["Retry-After"] = []string{strconv.Itoa(seconds)}
}
