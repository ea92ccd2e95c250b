package proxy

import (
	"context"
	"errors"
	"net/http"
	"regexp"
	"strconv"
	"time"
)

// ErrDeadline is the error of a [Result], and why a request's context ends, when the
// caller has said how long it waits and that is over. It says nothing of the upstream, as
// little as a caller that leaves.
var ErrDeadline = errors.New("proxy: the caller's own deadline has passed")

// longestDeadline is what a deadline may be at most to count: nothing here takes as long.
const longestDeadline = 24 * time.Hour

// within returns the context of a request: one that ends with the caller's own deadline,
// if it has sent one. Such a deadline only ever shortens what is done for the request.
func (h *Handler) within(r *http.Request) (context.Context, context.CancelFunc) {
	patience, ok := h.patienceOf(r.Header)
	if !ok {
		return r.Context(), func() {}
	}
	return context.WithTimeoutCause(r.Context(), patience, ErrDeadline)
}

// patienceOf returns how long the caller waits, the least of all that it says.
func (h *Handler) patienceOf(header http.Header) (least time.Duration, ok bool) {
	consider := func(lines []string, read func(string) (time.Duration, bool)) {
		for _, line := range lines {
			switch t, good := read(line); {
			case !good:
				if h.config.BadDeadlines != nil {
					h.config.BadDeadlines.Add(1)
				}
			case t < longestDeadline && (!ok || t < least):
				least, ok = t, true
			}
		}
	}
	if lines := header["Grpc-Timeout"]; lines != nil && isGRPC(header) {
		consider(lines, grpcTimeout)
	}
	if name := h.config.DeadlineHeader; name != "" {
		consider(header[name], plainTimeout)
	}
	return least, ok
}

var grpcUnits = map[byte]time.Duration{
	'H': time.Hour, 'M': time.Minute, 'S': time.Second, 'm': time.Millisecond, 'u': time.Microsecond, 'n': time.Nanosecond,
}

// grpcTimeout reads the header of gRPC: at most eight digits and a unit.
func grpcTimeout(s string) (time.Duration, bool) {
	const digits = 8
	if len(s) < 2 || len(s) > digits+1 {
		return 0, false
	}
	n, err := strconv.ParseUint(s[:len(s)-1], 10, 32)
	unit, ok := grpcUnits[s[len(s)-1]]
	if err != nil || !ok {
		return 0, false
	}
	if n >= uint64(longestDeadline/unit) {
		return longestDeadline, true
	}
	return time.Duration(n) * unit, true
}

var plainForm = regexp.MustCompile(`^[0-9]{1,12}(\.[0-9]{1,9})?(ms|s|m|h)?$`)

// plainTimeout reads a number of seconds, or one with a unit. 0 is none: to some it means
// no deadline.
func plainTimeout(s string) (time.Duration, bool) {
	const longest = 32
	if len(s) > longest || !plainForm.MatchString(s) {
		return 0, false
	}
	if last := s[len(s)-1]; last >= '0' && last <= '9' {
		s += "s"
	}
	t, err := time.ParseDuration(s)
	if err != nil { // it is a number, so it is too large
		return longestDeadline, true
	}
	return t, t > 0
}

// isOver reports whether the caller's own deadline has passed.
func (x *exchange) isOver() bool { return context.Cause(x.request.Context()) == ErrDeadline }

// refuseOver answers a call of gRPC as its client expects it: with DEADLINE_EXCEEDED.
func (x *exchange) refuseOver() {
	h := x.answer.Header()
	h["Content-Type"] = []string{"application/grpc"}
	h["Grpc-Status"] = []string{"4"}
	h["Grpc-Message"] = []string{"deadline exceeded"}
	h[x.handler.config.RequestIDHeader] = []string{x.id}
	x.answer.WriteHeader(http.StatusOK)
}
