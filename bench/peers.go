package main

import (
	"net/http"
	"time"

	"example.com/forebay"
	"github.com/failsafe-go/failsafe-go"
	"github.com/failsafe-go/failsafe-go/bulkhead"
	"github.com/failsafe-go/failsafe-go/failsafehttp"
	"github.com/go-chi/chi/v5/middleware"
	"github.com/go-kratos/aegis/ratelimit"
	"github.com/go-kratos/aegis/ratelimit/bbr"
)

// longPatience is a wait that does not end while a section runs.
const longPatience = time.Hour

// must is for configurations written in this program.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func newGate(c forebay.Config) *forebay.Gate { return must(forebay.New(c)) }

// fullGate returns a gate of one slot that is taken.
func fullGate(c forebay.Config) *forebay.Gate {
	c.MaxInFlight = 1
	g := newGate(c)
	if _, ok := g.TryAcquire(forebay.Call{}); !ok {
		panic("bench: a new gate refused")
	}
	return g
}

func newBulkhead[R any](limit int, wait time.Duration) bulkhead.Bulkhead[R] {
	return bulkhead.NewBuilder[R](uint(limit)).WithMaxWaitTime(wait).Build()
}

func fullBulkhead[R any](wait time.Duration) bulkhead.Bulkhead[R] {
	b := newBulkhead[R](1, wait)
	b.TryAcquirePermit()
	return b
}

// sheddingBBR returns an aegis limiter that refuses. It does so only while the
// processor is busy, so it is told that it always is; with two calls in flight
// and nothing measured it then refuses every further one.
func sheddingBBR() *bbr.BBR {
	l := bbr.NewLimiter(bbr.WithCPUThreshold(0))
	for range 2 {
		if _, err := l.Allow(); err != nil {
			panic(err)
		}
	}
	return l
}

var aegisDone ratelimit.DoneInfo

// failsafeHandler puts a bulkhead in front of next, as failsafe-go documents it.
func failsafeHandler(b bulkhead.Bulkhead[*http.Response], next http.Handler) http.Handler {
	return failsafehttp.NewHandler(next, failsafe.Policy[*http.Response](b))
}

// chiHandler puts chi's throttle in front of next, with a backlog if it may wait.
func chiHandler(limit, backlog int, wait time.Duration, next http.Handler) http.Handler {
	return middleware.ThrottleBacklog(limit, backlog, wait)(next)
}

// retryAfterChi is chi's throttle with its documented Retry-After, so that its
// refusals tell a client as much as ours.
func retryAfterChi(limit int, next http.Handler) http.Handler {
	return middleware.ThrottleWithOpts(middleware.ThrottleOpts{
		Limit:        limit,
		RetryAfterFn: func(bool) time.Duration { return time.Second },
	})(next)
}
