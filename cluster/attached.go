package cluster

import (
	"fmt"
	"slices"
	"time"
)

// Leave has the gate of that name give its slots back and leave, and does not wait:
// nobody is let in from now on (forebay.RejectedStore), the slots of calls that run go
// back as they end, and then the others hear that it is gone. A gate made afterwards may
// have the same name. Without such a gate it does nothing.
func (c *Cluster) Leave(gate string) {
	for _, s := range c.all() {
		if s.gate != gate || !s.beginToLeave() {
			continue
		}
		c.goroutines.Go(func() {
			<-s.done // it has gone, or that is in vain, or the cluster is closed
			c.detach(s)
		})
	}
}

// beginToLeave is leave; false if the gate does so already.
func (s *supplier) beginToLeave() (begun bool) {
	s.change(func(l *loan) {
		begun = !l.leaving
		l.leave()
	})
	return begun
}

// detach forgets a gate that is gone.
func (c *Cluster) detach(s *supplier) {
	s.end()
	c.mu.Lock()
	c.suppliers = slices.DeleteFunc(slices.Clone(c.suppliers), func(other *supplier) bool { return other == s })
	c.mu.Unlock()
	c.subscriber.changed()
}

// SetTerms puts other terms in force for the gates of that name: at once, also while the
// store is away; but a share begins no sooner than it would have. Whether they are fenced
// cannot be changed. On error nothing has changed.
func (c *Cluster) SetTerms(gate string, t Terms) error {
	if err := t.complete(c.config.Lease); err != nil {
		return err
	}
	var gates []*supplier
	for _, s := range c.all() {
		if s.gate != gate {
			continue
		}
		leaving, fenced := s.standing()
		switch {
		case leaving:
		case fenced != t.Fenced:
			return fmt.Errorf("cluster: Fenced is %v for gate %q; it cannot be changed from %v, make a new gate", t.Fenced, gate, fenced)
		default:
			gates = append(gates, s)
		}
	}
	if len(gates) == 0 {
		return fmt.Errorf("cluster: there is no gate %q; terms are set for gates that are attached", gate)
	}
	now := clock()
	for _, s := range gates {
		s.change(func(l *loan) { l.setTerms(now, t) })
	}
	return nil
}

// standing reports what no terms change.
func (s *supplier) standing() (leaving, fenced bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.loan.leaving, s.loan.terms.Fenced
}

// setTerms is told that the loan is on other terms now.
func (l *loan) setTerms(now time.Time, t Terms) {
	begun := l.alone && !l.how.Refuse && l.terms.WhenAway == Share
	l.terms = t
	l.me.MinShare, l.me.Withhold = t.MinShare, 0
	if t.WhenAway == Share {
		l.me.Withhold = t.Withhold
	}
	l.poked = true
	if l.alone && !l.leaving {
		l.shareToCome = !begun && l.sharesLater() && now.Before(l.shareFrom())
		l.goAlone(now)
	}
}

// Override returns the limit of the gate of that name that was set by hand, here or
// elsewhere, with what is left of it, as last heard; false if the configured one is in
// force.
func (c *Cluster) Override(gate string) (o Override, ok bool) {
	now := clock()
	for _, s := range c.all() {
		s.mu.Lock()
		if s.gate == gate && !s.loan.leaving {
			o = s.loan.overrideAt(now)
			ok = o.Limit >= 0
		}
		s.mu.Unlock()
	}
	return o, ok
}
