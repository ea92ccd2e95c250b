package forebay

import (
	"time"

	"example.com/forebay/internal/feed"
)

// ClusterStats is a clustered gate over all its instances, as far as this process
// knows. Figures of others are as they last told the store. Its JSON has durations in
// milliseconds.
type ClusterStats struct {
	Mode       string        `json:"mode"`                 // "normal", "learning", "share", "open", "closed" or "joining"
	Epoch      uint64        `json:"epoch"`                // of the store's state; 0: none heard of yet
	AgeMS      int64         `json:"age_ms"`               // of what is from others
	Limit      int           `json:"limit"`                // in force; 0: closed
	Configured []int         `json:"configured,omitempty"` // the limits that instances are configured with, if they differ
	Overridden bool          `json:"overridden"`           // the limit was set by hand
	Held       int           `json:"held"`                 // units lent to all instances
	InUse      int           `json:"in_use"`               // of which run
	Over       int           `json:"over"`                 // units lent above the limit, after a shrink
	Waiting    int           `json:"waiting"`              // calls in line anywhere
	Reclaimed  uint64        `json:"reclaimed"`            // units taken from instances that died, since the epoch began
	Lost       uint64        `json:"lost"`                 // units that instances held and the store knew nothing of
	Lapses     uint64        `json:"lapses"`               // how often this instance lost its slots
	Error      string        `json:"error,omitempty"`      // of the last exchange with the store
	Exchanges  uint64        `json:"exchanges"`            // of this instance
	Failures   uint64        `json:"failures"`             // of which failed
	LearningMS int64         `json:"learning_ms"`          // until the store lends again; 0: it does
	Instances  []ClusterPart `json:"instances"`
}

// ClusterPart is one instance that shares a gate's limit.
type ClusterPart struct {
	ID       string `json:"id"`
	Host     string `json:"host"`
	Self     bool   `json:"self"`
	Held     int    `json:"held"`
	InUse    int    `json:"in_use"`
	Waiting  int    `json:"waiting"`
	LeaseMS  int64  `json:"lease_ms"`            // what is left of its lease
	SeenMS   int64  `json:"seen_ms"`             // since it last spoke
	OldestMS int64  `json:"oldest_ms,omitempty"` // how long its oldest call runs; 0: not known
	Limit    int    `json:"limit"`               // it is configured with
}

// Local is this process's own part of a clustered gate.
type Local struct {
	Slots     int `json:"slots"`     // lent to it
	Available int `json:"available"` // of which are free
	InUse     int `json:"in_use"`    // units that run
	Waiting   int `json:"waiting"`   // calls in line
}

// ClusterStats returns the gate over the whole cluster; false without a
// [Config.Cluster]. It may ask the store, for at most a moment, and else says what was
// last known.
func (g *Gate) ClusterStats() (ClusterStats, bool) {
	if g.cluster == nil {
		return ClusterStats{}, false
	}
	return publicStats(g.cluster.supplier.Stats()), true
}

// OverCluster returns the picture of the gate as [Gates.Stats] does: over its whole
// cluster, with Local for what is here. Without a [Config.Cluster] it is that of
// [Gate.Stats].
func (g *Gate) OverCluster() Stats { return g.overCluster(g.Stats()) }

func publicStats(s feed.Stats) ClusterStats {
	c := ClusterStats{
		Mode: s.Mode, Epoch: s.Epoch, AgeMS: ms(s.Age), Limit: s.Limit, Configured: s.Configured, Overridden: s.Overridden,
		Held: s.Held, InUse: s.InUse, Over: s.Over, Waiting: s.Waiting, Reclaimed: s.Reclaimed, Lost: s.Lost,
		Lapses: s.Lapses, Error: s.Error, Exchanges: s.Exchanges, Failures: s.Failures, LearningMS: ms(s.Learning),
		Instances: make([]ClusterPart, len(s.Instances)),
	}
	for i, in := range s.Instances {
		c.Instances[i] = ClusterPart{
			ID: in.ID, Host: in.Host, Self: in.Self, Held: in.Held, InUse: in.InUse, Waiting: in.Waiting,
			LeaseMS: ms(in.Lease), SeenMS: ms(in.Seen), OldestMS: ms(in.Oldest), Limit: in.Limit,
		}
	}
	return c
}

func ms(d time.Duration) int64 { return d.Milliseconds() }

// overCluster makes a picture of this process one of the whole cluster, once anything
// is known of that.
func (g *Gate) overCluster(st Stats) Stats {
	c, ok := g.ClusterStats()
	if !ok {
		return st
	}
	g.lock()
	slots := g.machine.Slots()
	g.unlock()
	st.Cluster = &c
	st.Local = &Local{Slots: slots, Available: max(0, min(slots, st.Capacity)-st.InUse), InUse: st.InUse, Waiting: st.Waiting}
	if c.Epoch != 0 {
		st.Capacity, st.InUse, st.Waiting = c.Limit, c.InUse, c.Waiting
		st.Available = max(0, c.Limit-c.InUse)
	}
	return st
}
