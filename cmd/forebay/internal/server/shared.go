package server

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"example.com/forebay"
	"example.com/forebay/cluster"
	"example.com/forebay/cmd/forebay/internal/config"
	"example.com/forebay/contrib/redisstore"
)

// Store is where a cluster keeps its limits, and what is to be closed in the end.
type Store interface {
	cluster.Store
	// Close ends what is under way.
	Close()
}

// OpenRedis opens the store that a configuration names. Nothing is sent yet: the
// program starts while Redis is away.
func OpenRedis(c config.Cluster) (*redisstore.Store, error) {
	return redisstore.Open(redisstore.Config{
		URL: string(c.Redis), TLS: c.TLS.Client(),
		SentinelUsername: c.Sentinel.Username, SentinelPassword: string(c.Sentinel.Password),
	})
}

// shared is the cluster that a program is a part of, and what is known of how its
// gates get on there.
type shared struct {
	of      config.Cluster
	cluster *cluster.Cluster
	store   Store

	mu   sync.Mutex        // guards away
	away map[string]string // why the store is, by gate
}

// newShared joins the cluster that the configuration describes.
func (s *Server) newShared(c config.Cluster) (*shared, error) {
	open := s.opts.OpenStore
	if open == nil {
		open = func(c config.Cluster) (Store, error) { return OpenRedis(c) }
	}
	store, err := open(c)
	if err != nil {
		return nil, err
	}
	sh := &shared{of: c, store: store, away: map[string]string{}}
	sh.cluster, err = cluster.New(cluster.Config{
		Store: s.metrics.Gates.Exchanges(store), Name: c.Name, Host: c.Host, Lease: c.Lease,
		Changed: func(change cluster.Change) { s.clusterChanged(sh, change) },
	})
	if err != nil {
		//mutate:equivalent a configuration that was read gives the cluster what it takes
		store.Close()
		return nil, err
	}
	return sh, nil
}

// clusterChanged notes how a gate goes on, and writes the one line about it.
func (s *Server) clusterChanged(sh *shared, c cluster.Change) {
	if c.Mode == "closed" && !c.Away {
		return // it leaves, which nobody has to be told
	}
	sh.mu.Lock()
	_, was := sh.away[c.Gate]
	if c.Away {
		sh.away[c.Gate] = why(c)
	} else {
		delete(sh.away, c.Gate)
	}
	sh.mu.Unlock()
	log, message := s.logger().Info, "the gate goes on otherwise in its cluster"
	switch {
	case c.Away && !was:
		message = "the cluster's store is away"
	case was && !c.Away:
		message = "the cluster's store is back"
	case c.Was == "joining":
		message = "the gate has joined its cluster"
	}
	if c.Away || c.Mode != "normal" {
		log = s.logger().Warn
	}
	log(message, "gate", c.Gate, "mode", c.Mode, "was", c.Was, "epoch", c.Epoch, "error", c.Error)
}

// why says in a line why a gate is degraded.
func why(c cluster.Change) string {
	how := "it goes on with the slots that it has"
	switch c.Mode {
	case "share":
		how = "it lets in its share of the limit"
	case "open":
		how = "it lets in the whole limit by itself"
	case "closed":
		how = "it lets nobody in"
	}
	return fmt.Sprintf("the cluster's store is away (%s); %s", c.Error, how)
}

// Away returns why a gate of a cluster has to do without its store, "" if it need not.
func (s *Server) Away(gate string) string {
	sh := s.state.Load().shared
	if sh == nil {
		return ""
	}
	sh.mu.Lock()
	defer sh.mu.Unlock()
	return sh.away[gate]
}

// sharedFor returns the cluster of a configuration: that of the state before, if there
// is one.
func (s *Server) sharedFor(cfg *config.Config, old *state) (*shared, error) {
	switch {
	case cfg.Cluster == nil:
		return nil, nil
	case old != nil && old.shared != nil:
		return old.shared, nil // checkFixed has compared them
	}
	return s.newShared(*cfg.Cluster)
}

// isShared reports whether a gate has its slots from a cluster.
func isShared(g *forebay.Gate) bool { return g.Config().Cluster != nil }

// departed has gates that are no longer in force leave their cluster: once nobody is
// in their line, since a gate that leaves lets nobody in. With all of them gone the
// cluster itself is closed.
func (s *Server) departed(sh *shared, gone []*forebay.Gate, all bool) {
	gone = slices.DeleteFunc(slices.Clone(gone), func(g *forebay.Gate) bool { return !isShared(g) })
	if sh == nil || len(gone) == 0 && !all {
		return
	}
	s.departures.Go(func() {
		s.emptyLines(gone)
		for _, g := range gone {
			sh.cluster.Leave(g.Name())
		}
		if all {
			s.end(sh, s.exit)
		}
	})
}

// emptyLines waits until nobody is in the lines of the gates, or the program ends. A
// request that found a gate a moment ago may still be about to ask.
func (s *Server) emptyLines(gates []*forebay.Gate) {
	const look = 100 * time.Millisecond
	tick := time.NewTicker(look)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-s.exit.Done():
			return
		}
		if !slices.ContainsFunc(gates, func(g *forebay.Gate) bool { return g.Stats().Waiting > 0 }) {
			return
		}
	}
}

// goodbye is how long the store may take to hear that the program goes. What it has
// not heard by then it lends again once the leases have ended.
const goodbye = time.Second

// end gives everything back that a cluster has lent and leaves it. Calls that still
// run keep their slots until they end, or ctx does.
func (s *Server) end(sh *shared, ctx context.Context) {
	if sh == nil {
		return
	}
	gone := make(chan error, 1)
	closing, cancel := context.WithCancel(context.WithoutCancel(ctx))
	//mutate:equivalent what it bounds is over
	defer cancel()
	go func() { gone <- sh.cluster.Close(closing) }()
	var err error
	select {
	case err = <-gone:
	case <-ctx.Done():
		over := time.AfterFunc(goodbye, cancel)
		defer over.Stop()
		err = <-gone
	}
	if err != nil {
		s.logger().Warn("the cluster was left without a word; its slots are lent again when the leases have ended", "error", err.Error())
	}
	sh.store.Close()
}
