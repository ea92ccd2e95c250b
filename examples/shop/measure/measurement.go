package main

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"time"

	"example.com/forebay/examples/shop/burst"
)

// measurement is what the flags say.
type measurement struct {
	out      io.Writer
	times    float64
	duration time.Duration
	seed     uint64
	data     string
}

func (m *measurement) run(ctx context.Context) error {
	backend, err := startSelf(ctx, asShop, "--listen", "127.0.0.1:0", "--until-eof", "--data", m.data)
	if err != nil {
		return err
	}
	defer backend.stop()
	gates, err := startSelf(ctx, asGates, backend.url)
	if err != nil {
		return err
	}
	defer gates.stop()
	carries, err := m.capacities(ctx, backend.url)
	if err != nil {
		return err
	}
	rate := m.times * carries
	fmt.Fprintf(m.out, "offered: %.0f calls a second, %g times that, deadline 2 s\n", rate, m.times)
	if _, _, err := peak(ctx, backend.url); err != nil { // forgets the peak so far
		return err
	}
	var columns []burst.Column
	for _, c := range []struct {
		title, url string
		rate       float64
	}{
		{"half the capacity", backend.url, carries / 2},
		{"burst, without", backend.url, rate},
		{"after it", backend.url, carries / 2},
		{"burst, with gates", gates.url, rate},
	} {
		result, err := m.burst(ctx, c.title, c.url, c.rate)
		if err != nil {
			return err
		}
		columns = append(columns, burst.Column{Title: c.title, Result: result})
		orders, reports, err := peak(ctx, backend.url)
		if err != nil {
			return err
		}
		fmt.Fprintf(m.out, "\n%-18s at most %d orders and %d reports inside the shop at once\n", c.title, orders, reports)
	}
	fmt.Fprintln(m.out)
	return burst.Table(m.out, columns...)
}

// capacities prints what the shop carries of each class alone, and returns what it
// carries of the mix.
func (m *measurement) capacities(ctx context.Context, url string) (float64, error) {
	callers, each := runtime.NumCPU(), 2*time.Second
	mix := burst.Shop(1)
	if _, err := burst.Capacity(ctx, url, mix, callers, each/2); err != nil { // fills the caches
		return 0, err
	}
	for _, c := range mix[:2] {
		n, err := burst.Capacity(ctx, url, []burst.Class{c}, callers, each)
		if err != nil {
			return 0, err
		}
		fmt.Fprintf(m.out, "carries %.0f %s a second when there is nothing else\n", n, c.Name)
	}
	n, err := burst.Capacity(ctx, url, mix, callers, each)
	if err != nil {
		return 0, err
	}
	fmt.Fprintf(m.out, "carries %.0f calls of the mix a second\n", n)
	return n, nil
}

func (m *measurement) burst(ctx context.Context, title, url string, rate float64) (burst.Result, error) {
	return burst.Run(ctx, burst.Plan{
		URL: url, Classes: burst.Shop(rate), Duration: m.duration, Seed: m.seed, HonourRetryAfter: true,
		Progress: func(p burst.Progress) {
			o := p.Classes[0]
			fmt.Fprintf(m.out, "\r%-18s %5.1f s  orders: %6d sent, %6d in time, %6d given up, %5d refused, %5d in flight  ",
				title, p.Elapsed.Seconds(), o.Sent, o.InTime, o.Late, o.Refused, p.InFlight)
		},
	})
}
