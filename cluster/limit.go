package cluster

import "fmt"

// override is a limit that was set by hand.
type override struct {
	version uint64
	limit   int   // -1: none
	until   int64 // by the server's clock; 0: it stays
}

func (o override) shown(wall int64) Override {
	shown := Override{Version: o.version, Limit: o.limit}
	if o.until > 0 {
		shown.For = fromMillis(o.until - wall)
	}
	return shown
}

// limits puts the limit in force: the one set by hand with the highest version, else
// the lowest that a live instance is configured with. The lowest, so that a limit that
// comes with new instances neither takes effect before the old ones have gone, if it
// is higher, nor after that, if it is lower.
func (s *step) limits() {
	if s.newer {
		s.hear(s.r.Override)
	}
	if s.override.until > 0 && s.wall >= s.override.until {
		s.override.limit, s.override.until = -1, 0
	}
	limit := s.low
	if s.override.limit >= 0 {
		limit = s.override.limit
	}
	if limit == s.limit {
		return
	}
	if s.limit >= 0 {
		s.publish(s.key, fmt.Sprintf("l %d", limit))
	}
	s.limit = limit
	s.line.fromTheFront()
}

func (s *step) hear(o Override) {
	if o.Version < s.override.version || o.Version == s.override.version && o.Limit >= s.override.limit {
		return
	}
	s.override = override{version: o.Version, limit: max(-1, o.Limit)}
	if o.For > 0 && o.Limit >= 0 {
		s.override.until = s.wall + inMillis(o.For)
	}
}
