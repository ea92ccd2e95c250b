// Package demo shows what a gate is for: the sample shop is hit by the same burst
// twice, without and with forebay before it. Nothing is simulated: the shop is a
// process of its own over a real database, forebay is the real program, and the
// callers are open loop, so that nobody is spared by a slow answer.
package demo

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"example.com/forebay/examples/shop/burst"
)

// Options say how the demo goes. The zero value is what `forebay demo` shows.
type Options struct {
	Out      io.Writer     // where it is told; required
	Progress bool          // live lines, for a terminal
	Data     string        // the shop's directory; empty: the user's cache
	Times    float64       // load of the burst, in capacities of the shop; 0: 5
	For      time.Duration // length of a burst; 0: 10 s
	Seed     uint64        // of the burst; 0: 1
	Stay     bool          // keep running until ctx ends
}

const (
	defaultTimes = 5
	defaultFor   = 10 * time.Second
	// calm is the load between the bursts, in capacities: the shop must have come
	// back before the second one, or the comparison is unfair.
	calm = 0.5
)

// Outcome is what the demo saw.
type Outcome struct {
	Without, With burst.Result
}

// configuration is that of the gates of the source of this project: reports strict,
// orders moderate, admin a lane of its own, health open.
const configuration = `# made by forebay demo
listen: 127.0.0.1:%d
admin: 127.0.0.1:%d
upstream: %s
log: {to: %s, decisions: refused}
pools: {db: 20}
gates:
  reports: {max_in_flight: 1, max_wait: 100ms, pool: db}
  orders: {max_in_flight: 12, max_wait: 50ms, pool: db}
  admin: {max_in_flight: 2}
routes:
  - {match: /health, exempt: true}
  - {match: /reports/, gate: reports}
  - {match: /admin/, gate: admin}
  - {match: /, gate: orders}
`

// Run shows the demo and returns what it saw.
func Run(ctx context.Context, o Options) (Outcome, error) {
	if o.Times == 0 {
		o.Times = defaultTimes
	}
	if o.For == 0 {
		o.For = defaultFor
	}
	o.Seed = max(o.Seed, 1)
	dir, err := os.MkdirTemp("", "forebay-demo-")
	if err != nil {
		return Outcome{}, err
	}
	defer os.RemoveAll(dir)
	d := &demo{Options: o, dir: dir}
	defer d.stop()
	if err := d.start(ctx); err != nil {
		return Outcome{}, err
	}
	seen, err := d.compare(ctx)
	if err != nil {
		return Outcome{}, err
	}
	d.explain(seen)
	if o.Stay {
		d.stay(ctx)
	}
	return seen, nil
}

type demo struct {
	Options
	dir   string
	shop  *child
	gate  *child
	front string // where forebay answers
	admin string
}

// start starts the shop, and forebay before it.
func (d *demo) start(ctx context.Context) (err error) {
	d.say("1. A shop: orders and reports over SQLite, with a pool of 20 connections.")
	args := []string{"demo", "--as-shop", "--", "--listen", "127.0.0.1:0", "--until-eof"}
	if d.Data != "" {
		args = append(args, "--data", d.Data)
	}
	if d.shop, err = startSelf(ctx, d.Out, "listening on ", args...); err != nil {
		return fmt.Errorf("the shop did not start: %w", err)
	}
	ports, err := freePorts(2)
	if err != nil {
		return err
	}
	file, log := filepath.Join(d.dir, "forebay.yaml"), filepath.Join(d.dir, "decisions.log")
	text := fmt.Sprintf(configuration, ports[0], ports[1], d.shop.word, log)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return err
	}
	d.front = fmt.Sprintf("http://127.0.0.1:%d", ports[0])
	d.admin = fmt.Sprintf("http://127.0.0.1:%d", ports[1])
	d.gate, err = startSelf(ctx, d.Out, "", "serve", "-c", file)
	if err == nil {
		err = waitFor(ctx, d.admin+"/ready")
	}
	if err != nil {
		return fmt.Errorf("forebay did not start: %w", err)
	}
	return nil
}

func (d *demo) stop() {
	for _, c := range []*child{d.gate, d.shop} {
		if c != nil {
			c.stop()
		}
	}
}

// compare sends the same burst twice.
func (d *demo) compare(ctx context.Context) (seen Outcome, err error) {
	carries, err := d.capacity(ctx)
	if err != nil {
		return seen, err
	}
	rate := carries * d.Times
	d.say("   It carries %.0f calls a second of a mix of orders, reports and admin.", carries)
	d.say("2. A burst of %.0f calls a second, %g times that, straight at the shop. Whoever has no\n   answer after 2 s gives up.", rate, d.Times)
	if seen.Without, err = d.burst(ctx, "without", d.shop.word, rate, d.For); err != nil {
		return seen, err
	}
	d.say("3. A pause at half the load, until the shop has come back.")
	if _, err = d.burst(ctx, "pause", d.shop.word, carries*calm, 5*time.Second); err != nil {
		return seen, err
	}
	d.say("4. The same burst, call for call, with forebay before the shop.")
	seen.With, err = d.burst(ctx, "with", d.front, rate, d.For)
	return seen, err
}

// capacity measures what the shop carries when nobody has to wait.
func (d *demo) capacity(ctx context.Context) (float64, error) {
	mix := burst.Shop(1)
	if _, err := burst.Capacity(ctx, d.shop.word, mix, runtime.NumCPU(), time.Second); err != nil {
		return 0, err // this round only filled the caches
	}
	return burst.Capacity(ctx, d.shop.word, mix, runtime.NumCPU(), 2*time.Second)
}

func (d *demo) burst(ctx context.Context, what, url string, rate float64, length time.Duration) (burst.Result, error) {
	plan := burst.Plan{
		URL: url, Classes: burst.Shop(rate), Duration: length, Seed: d.Seed, HonourRetryAfter: true,
	}
	if d.Progress {
		plan.Progress = func(p burst.Progress) {
			o := p.Classes[0]
			fmt.Fprintf(d.Out, "\r   %-8s %4.1f s  orders: %6d in time  %6d given up  %6d refused  %6d in flight ",
				what, p.Elapsed.Seconds(), o.InTime, o.Late, o.Refused, p.InFlight)
		}
		defer fmt.Fprintln(d.Out)
	}
	return burst.Run(ctx, plan)
}

func (d *demo) say(format string, args ...any) { fmt.Fprintf(d.Out, format+"\n", args...) }

// explain prints the table and what it means.
func (d *demo) explain(seen Outcome) {
	fmt.Fprintln(d.Out)
	_ = burst.Table(d.Out, burst.Column{Title: "without", Result: seen.Without}, burst.Column{Title: "with forebay", Result: seen.With})
	before, after := seen.Without.Class("orders"), seen.With.Class("orders")
	fmt.Fprintln(d.Out)
	d.say("Of the orders, %d of %d were answered in time without the gate and %d with it. The gate\nlets 1 report and 12 orders run, a few wait for up to 100 ms, and refuses the others in\n%v (median of the reports), so that the shop works on what it can still finish.",
		before.InTime, before.Arrived(), after.InTime, seen.With.Class("reports").Refusals.P50.Round(100*time.Microsecond))
}

// stay keeps everything running to be looked at.
func (d *demo) stay(ctx context.Context) {
	d.say("\nIt all keeps running; stop it with Ctrl-C.\n  the shop behind forebay  %s/api/orders?limit=3\n  what the gates do        %s/\n  the same in a terminal   forebay status --admin %s", d.front, d.admin, d.admin[len("http://"):])
	<-ctx.Done()
}
