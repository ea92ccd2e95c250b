package forebay

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// SetLimit puts a limit in force at once: 0 closes the gate (everybody is
// refused as busy), up to 1,048,575. Calls that run go on; after a shrink nobody
// starts until there is room, after a growth exactly the difference of those in
// line starts. It stays until the next SetLimit, [Gate.Reconfigure], or word of a
// limiter; a closed gate stays closed whatever a limiter wants. A value out of
// range changes nothing and is an error. Of a gate with a [Config.Cluster] it is the
// limit of the whole cluster that is set, here at once and elsewhere as soon as the
// store has heard of it.
func (g *Gate) SetLimit(n int) error {
	if err := g.checkLimit(n); err != nil {
		return err
	}
	g.lock()
	g.machine.SetLimit(clock(), n)
	g.unlock()
	if g.cluster != nil {
		g.cluster.supplier.SetLimit(n, 0)
	}
	return nil
}

// SetClusterLimit is [Gate.SetLimit] for a time: 0 is until another word, and an n
// below 0 puts the configured limit in force again. The store ends it, whatever has
// become of this process. A gate without a [Config.Cluster] is an error.
func (g *Gate) SetClusterLimit(n int, lasts time.Duration) error {
	if g.cluster == nil {
		return fmt.Errorf("forebay: gate %q has no cluster; SetLimit sets the limit of this process", g.name)
	}
	if lasts < 0 {
		return fmt.Errorf("forebay: limit of gate %q for %v; it must be 0 (until another word) or more", g.name, lasts)
	}
	here := n
	if n < 0 {
		n, here = -1, g.settings.Load().MaxInFlight
	}
	if err := g.checkLimit(here); err != nil {
		return err
	}
	port{g}.SetLimit(here)
	g.cluster.supplier.SetLimit(n, lasts)
	return nil
}

func (g *Gate) checkLimit(n int) error {
	if n < 0 || n > maxUnits {
		return fmt.Errorf("forebay: limit %d for gate %q; it must be 0 (closed) to %d", n, g.name, maxUnits)
	}
	return nil
}

// Reconfigure puts another configuration in force, with MaxInFlight as the
// limit. Leases stay out, whoever waits keeps place and patience, counters go
// on. An empty Name means the gate's own and any other is an error; Script and
// Cluster are those of the start whatever c says. To change one thing, start from
// [Gate.Config]. On error nothing has changed, and the error names every mistake. Of a
// gate with a cluster a higher limit is in force once the cluster says so, which is
// when every instance is configured with it.
func (g *Gate) Reconfigure(c Config) error { return g.ReconfigureAt(c, c.MaxInFlight) }

// ReconfigureAt is Reconfigure with another limit in force than MaxInFlight, in one
// step: 0 keeps a gate closed over a reload. See [Gate.SetLimit]. To a cluster that is
// what this process is configured with, and no limit set by hand.
func (g *Gate) ReconfigureAt(c Config, limit int) error {
	if c.Name == "" {
		c.Name = g.name
	}
	err := c.validate()
	if c.Streams.Gate == g {
		err = errors.Join(err, fmt.Errorf("forebay: Streams.Gate is gate %q itself; streams stay in it anyway", g.name))
	}
	if c.Name != g.name {
		err = errors.Join(err, fmt.Errorf("forebay: Name is %q; gate %q cannot be renamed, make a new one", c.Name, g.name))
	}
	if err == nil {
		err = g.checkLimit(limit)
	}
	if err != nil {
		return err
	}
	old := g.settings.Load()
	c.Script, c.Cluster = old.Script, old.Cluster
	s := newSettings(g, c)
	g.lock()
	g.settings.Store(s)
	now, here := clock(), limit
	if g.cluster != nil {
		here = min(limit, g.machine.Limit()) // the cluster says when it may be more
	}
	g.machine.Configure(now, s.machine(&g.limiterPanics), here)
	g.watchAfreshLocked(now, s)
	g.unlock()
	if g.cluster != nil {
		g.cluster.supplier.Configured(limit)
	}
	return nil
}

// Config returns the configuration in force. Its MaxInFlight is what was
// configured; what is in force now is in [Stats.Capacity].
func (g *Gate) Config() Config {
	c := g.settings.Load().Config
	c.Observers = append([]Observer(nil), c.Observers...)
	return c
}

// drain is what those wait for who asked a gate to drain.
type drain struct {
	over    chan struct{}
	resumed bool // it ended because the gate admits again
}

// Drain stops admitting: from now on everybody is refused as draining, those in
// line at once. It returns nil when every lease has been given back, and an error
// when ctx ends before (the gate goes on draining) or when [Gate.Resume] ends the
// drain. It may be called again, and by many at once.
func (g *Gate) Drain(ctx context.Context) error {
	g.lock()
	g.machine.Drain(clock())
	if g.drain == nil {
		g.drain = &drain{over: make(chan struct{})}
	}
	d := g.drain
	g.unlock()
	if !d.waitFor(ctx) {
		return fmt.Errorf("forebay: gate %q still has calls in flight: %w", g.name, causeOf(ctx))
	}
	if d.resumed {
		return fmt.Errorf("forebay: gate %q was resumed before it was empty", g.name)
	}
	return nil
}

// waitFor reports whether the drain is over; a drain that is wins over a context
// that has ended.
func (d *drain) waitFor(ctx context.Context) bool {
	select {
	case <-d.over:
		return true
	case <-ctx.Done():
	}
	select {
	case <-d.over:
		return true
	default:
		return false
	}
}

// endDrainLocked tells those who wait for the end of a drain.
func (g *Gate) endDrainLocked(resumed bool) {
	if g.drain != nil {
		g.drain.resumed = resumed
		close(g.drain.over)
		g.drain = nil
	}
}

// Resume ends a drain: the gate admits again. Who still waits in [Gate.Drain] is
// told so.
func (g *Gate) Resume() {
	g.lock()
	g.endDrainLocked(g.machine.Calls() > 0)
	g.machine.Resume(clock())
	g.unlock()
}
