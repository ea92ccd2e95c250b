package main

import (
	"context"
	"math"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	_ "unsafe" // for the processor's load that aegis reads

	"example.com/forebay"
	"example.com/forebay/adaptive"
	"example.com/forebay/internal/simulate"
	"github.com/failsafe-go/failsafe-go/adaptivelimiter"
	"github.com/go-kratos/aegis/ratelimit"
	"github.com/go-kratos/aegis/ratelimit/bbr"
	"github.com/platinummonkey/go-concurrency-limits/core"
	"github.com/platinummonkey/go-concurrency-limits/limit"
	"github.com/platinummonkey/go-concurrency-limits/limiter"
	"github.com/platinummonkey/go-concurrency-limits/strategy"
)

// real are the contenders that run as they are, in virtual time.
var real = []contender{
	whole(nameOurs, ours),
	whole("failsafe-go, defaults", func(backend, uint64) module {
		l := adaptivelimiter.NewWithDefaults[any]()
		return module{limit: l.Limit, acquire: func(context.Context) (func(bool), bool) {
			p, ok := l.TryAcquirePermit()
			return permit(p), ok
		}}
	}),
	whole("failsafe-go, queueing", func(backend, uint64) module {
		l := adaptivelimiter.NewBuilder[any]().WithQueueing(2, 3).Build()
		return module{limit: l.Limit, waits: true, acquire: func(ctx context.Context) (func(bool), bool) {
			p, err := l.AcquirePermit(ctx)
			return permit(p), err == nil
		}}
	}),
	whole("failsafe-go, 100 ms wait", func(backend, uint64) module {
		l := adaptivelimiter.NewBuilder[any]().WithLimits(1, most, before).Build()
		return module{limit: l.Limit, waits: true, room: l.CanAcquirePermit, acquire: func(ctx context.Context) (func(bool), bool) {
			p, err := l.AcquirePermitWithMaxWait(ctx, patience)
			return permit(p), err == nil
		}}
	}),
	whole("go-concurrency-limits Gradient2", func(backend, uint64) module {
		return concurrencyLimits(must(limit.NewGradient2Limit("", before, most, 1, nil, 0.2, 600, nil, nil)))
	}),
	whole("go-concurrency-limits Vegas", func(backend, uint64) module {
		return concurrencyLimits(limit.NewVegasLimitWithRegistry("", before, nil, most, -1, nil, nil, nil, nil, nil, -1, nil, nil))
	}),
	whole("go-concurrency-limits AIMD", func(backend, uint64) module {
		return concurrencyLimits(limit.NewAIMDLimit("", before, 0.9, 1, nil))
	}),
	whole("aegis BBR", func(backend, uint64) module { return aegis() }),
}

func whole(name string, of func(b backend, seed uint64) module) contender {
	return contender{name: name, real: true, gate: func(b backend, seed uint64) simulate.Gate {
		return simulate.Gate{Foreign: func(int) simulate.Foreign { return newBubble(of(b, seed)) }}
	}}
}

// ours is a gate as a program has it.
func ours(_ backend, seed uint64) module {
	probe := must(adaptive.NewProbe(adaptive.ProbeConfig{Deadline: deadline, Max: most, Seed: seed}))
	seen := &watched{Limiter: probe}
	g := must(forebay.New(forebay.Config{Name: "gate", MaxInFlight: before, MaxWait: patience, Limiter: seen}))
	return module{
		limit: func() int { return int(seen.limit.Load()) }, waits: true,
		acquire: func(ctx context.Context) (func(bool), bool) {
			l, err := g.Acquire(ctx, forebay.Call{})
			return func(bool) { l.Release() }, err == nil
		},
	}
}

// watched is a limiter of which the limit can be seen without asking the gate.
type watched struct {
	forebay.Limiter
	limit atomic.Int64
}

// Observe implements [forebay.Limiter].
func (w *watched) Observe(o *forebay.Observation) int {
	n := w.Limiter.Observe(o)
	w.limit.Store(int64(n))
	return n
}

func permit(p adaptivelimiter.Permit) func(bool) { return func(bool) { p.Record() } }

// concurrencyLimits puts a limit behind the module's usual limiter. A call whose caller
// has left counts as dropped, as its documentation wants it.
func concurrencyLimits(l core.Limit) module {
	const second, window = int64(time.Second), 100 // the module's own defaults
	d := must(limiter.NewDefaultLimiter(l, second, second, 1e5, window, strategy.NewPreciseStrategy(before), limit.NoopLimitLogger{}, core.EmptyMetricRegistryInstance))
	return module{limit: l.EstimatedLimit, acquire: func(ctx context.Context) (func(bool), bool) {
		t, ok := d.Acquire(ctx)
		return func(late bool) {
			if late {
				t.OnDropped()
			} else {
				t.OnSuccess()
			}
		}, ok
	}}
}

// processor is the load that aegis believes in, of 1000. It measures the processor's,
// which has nothing to do here, so it is told the backend's.
//
//go:linkname processor github.com/go-kratos/aegis/ratelimit/bbr.gCPU
var processor int64

// oneAegis lets one bubble at a time have aegis, whose load is one of the whole process.
var oneAegis sync.Mutex

func aegis() module {
	l := bbr.NewLimiter()
	load, next := 0.0, time.Now()
	return module{
		limit: func() int { return 0 },
		busy: func(part float64) {
			for at := time.Now(); !next.After(at); next = next.Add(500 * ms) {
				load = math.Floor(load*.95 + 1000*part*.05) // as its own loop has it
			}
			atomic.StoreInt64(&processor, int64(load))
		},
		acquire: func(context.Context) (func(bool), bool) {
			done, err := l.Allow()
			return func(bool) { done(ratelimit.DoneInfo{}) }, err == nil
		},
	}
}

// bubbles is the test that the whole program runs in: without one there are no bubbles.
var bubbles *testing.T

// playReal plays a job in a bubble.
func playReal(j *job) {
	if j.contender.name == "aegis BBR" {
		oneAegis.Lock()
		defer oneAegis.Unlock()
	}
	bubbles.Run(j.title(), func(t *testing.T) {
		synctest.Test(t, func(*testing.T) {
			var b *bubble
			c := j.contender
			gate := c.gate
			c.gate = func(of backend, seed uint64) simulate.Gate {
				g := gate(of, seed)
				foreign := g.Foreign
				g.Foreign = func(i int) simulate.Foreign {
					b = foreign(i).(*bubble)
					return b
				}
				return g
			}
			j.playWith(c)
			b.end()
		})
	})
}
