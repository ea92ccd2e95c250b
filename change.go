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
// limiter. A value out of range changes nothing and is an error.
func (g *Gate) SetLimit(n int) error {
	if n < 0 || n > maxUnits {
		return fmt.Errorf("forebay: limit %d for gate %q; it must be 0 (closed) to %d", n, g.name, maxUnits)
	}
	g.lock()
	g.machine.SetLimit(time.Now(), n)
	g.unlock()
	return nil
}

// Reconfigure puts another configuration in force, with MaxInFlight as the
// limit. Leases stay out, whoever waits keeps place and patience, counters go
// on. The name and Script stay those of the start. On error nothing has changed, and the error names
// every mistake.
func (g *Gate) Reconfigure(c Config) error {
	if c.Name == "" {
		c.Name = defaultName
	}
	err := c.validate()
	if c.Name != g.name {
		err = errors.Join(err, fmt.Errorf("forebay: Name is %q; gate %q cannot be renamed, make a new one", c.Name, g.name))
	}
	if err != nil {
		return err
	}
	c.Script = g.settings.Load().Script
	s := newSettings(g, c)
	g.lock()
	g.settings.Store(s)
	g.machine.Configure(time.Now(), s.machine())
	g.unlock()
	return nil
}

// Config returns the configuration in force. Its MaxInFlight is what was
// configured; what is in force now is in [Stats.Capacity].
func (g *Gate) Config() Config {
	c := g.settings.Load().Config
	c.Observers = append([]Observer(nil), c.Observers...)
	return c
}

// Drain stops admitting: from now on everybody is refused as draining, those in
// line at once. It returns when every lease has been given back, or with the
// context's error when ctx ends before; the gate goes on draining then. Drain may
// be called again, by many at once, and undone by [Gate.Resume].
func (g *Gate) Drain(ctx context.Context) error {
	g.lock()
	g.machine.Drain(time.Now())
	var drained chan struct{}
	if g.machine.Calls() > 0 {
		if g.drained == nil {
			g.drained = make(chan struct{})
		}
		drained = g.drained
	}
	g.unlock()
	if drained == nil {
		return nil
	}
	select {
	case <-drained:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("forebay: gate %q still has calls in flight: %w", g.name, context.Cause(ctx))
	}
}

// Resume ends a drain: the gate admits again.
func (g *Gate) Resume() {
	g.lock()
	g.machine.Resume(time.Now())
	g.unlock()
}
