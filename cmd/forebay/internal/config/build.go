package config

import (
	"fmt"
	"reflect"
	"slices"

	"example.com/forebay"
)

// Build returns fresh gates and the groups around them. The observers are told of
// every gate's events and of the requests that pass without a slot.
func (c *Config) Build(observers ...forebay.Observer) (*forebay.Gates, *forebay.Groups, error) {
	configs := make([]forebay.Config, len(c.Gates))
	for i, g := range c.Gates {
		configs[i] = g.Config
		configs[i].Observers = observers
	}
	gates, err := forebay.NewGates(configs...)
	if err != nil {
		return nil, nil, err
	}
	for i, g := range c.Gates {
		if g.StreamsGate != "" {
			configs[i].Streams.Gate = gates.Get(g.StreamsGate)
			if err := gates.Get(g.Name).Reconfigure(configs[i]); err != nil {
				return nil, nil, err
			}
		}
		if g.Closed {
			if err := gates.Get(g.Name).SetLimit(0); err != nil {
				return nil, nil, err
			}
		}
	}
	groups, err := c.Groups(gates.Get, observers...)
	return gates, groups, err
}

// Groups returns the routes around gates that exist already, each found by its
// name: what a reload needs. Routes that the program answers itself pass without a
// slot, as exempt ones do.
func (c *Config) Groups(gate func(name string) *forebay.Gate, observers ...forebay.Observer) (*forebay.Groups, error) {
	routes := make([]forebay.Route, len(c.Routes))
	for i, r := range c.Routes {
		routes[i] = forebay.Route{Match: r.Match, Exempt: len(r.Gates) == 0, Lane: r.Lane, Cost: r.Cost}
		for _, name := range r.Gates {
			g := gate(name)
			if g == nil {
				return nil, fmt.Errorf("config: route %q names the gate %q, which is not there", r.Match, name)
			}
			routes[i].Gates = append(routes[i].Gates, g)
		}
	}
	return forebay.NewGroups(forebay.GroupsConfig{Routes: routes, Observers: observers})
}

// Apply puts g in force on a running gate of that name: leases stay out, whoever
// waits keeps place and patience, counters go on. A gate that stays closed and of
// which nothing else has changed is not touched, since reconfiguring it would open
// it for an instant. Where streams move to is not changed: that takes another gate.
func (g Gate) Apply(gate *forebay.Gate, observers ...forebay.Observer) error {
	c := g.Config
	c.Observers = observers
	if g.StreamsGate != "" {
		c.Streams.Gate = gate.Config().Streams.Gate
	}
	if g.Closed {
		was := gate.Config()
		same := was.Hold == c.Hold && was.Upload == c.Upload && was.Streams == c.Streams && was.MaxWait == c.MaxWait && was.MaxWaiting == c.MaxWaiting && was.PerCaller == c.PerCaller && slices.Equal(was.Lanes, c.Lanes) && reflect.DeepEqual(was.Refusal, c.Refusal)
		if same && gate.Stats().Capacity == 0 {
			return nil
		}
	}
	if err := gate.Reconfigure(c); err != nil {
		return err
	}
	if g.Closed {
		return gate.SetLimit(0)
	}
	return nil
}
