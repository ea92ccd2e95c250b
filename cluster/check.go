package cluster

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

const (
	defaultName     = "forebay"
	defaultLease    = 2 * time.Second
	defaultIdleHold = 50 * time.Millisecond

	shortestLease   = 200 * time.Millisecond // an exchange may take half of it
	longestLease    = 10 * time.Minute       // for 1.6 of it the slots of a dead instance are nobody's
	longestHold     = time.Minute            // others are shown such a slot as lent
	longestWithhold = 24 * time.Hour         // so that a wrong unit is found
	maxUnits        = 1<<20 - 1              // as of a gate
	maxName         = 64
	nameAlphabet    = "letters, digits and any of - _ . / :"
)

// mistakes gathers what is wrong with a configuration.
type mistakes []error

func (m *mistakes) wrong(bad bool, format string, args ...any) {
	if bad {
		*m = append(*m, fmt.Errorf("cluster: "+format, args...))
	}
}

// complete fills in the defaults, and returns every mistake at once.
func (c *Config) complete() error {
	if c.Name == "" {
		c.Name = defaultName
	}
	if c.Lease == 0 {
		c.Lease = defaultLease
	}
	var m mistakes
	m.wrong(c.Store == nil, "Store is nil; a cluster needs one to keep its ledgers")
	m.wrong(!isName(c.Name), "Name is %q; it must be 1 to %d %s", c.Name, maxName, nameAlphabet)
	m.wrong(len(c.Host) > 255 || strings.ContainsFunc(c.Host, notPrintable), "Host is %q; it must be at most 255 printable characters", c.Host)
	m.wrong(c.Lease < shortestLease, "Lease is %v; it must be at least %v", c.Lease, shortestLease)
	m.wrong(c.Lease > longestLease, "Lease is %v; it must be at most %v", c.Lease, longestLease)
	return errors.Join(append(m, c.Terms.complete(c.Lease))...)
}

// complete fills in the defaults, and returns every mistake at once.
func (t *Terms) complete(lease time.Duration) error {
	if t.IdleHold == 0 {
		t.IdleHold = defaultIdleHold
	}
	var m mistakes
	m.wrong(t.WhenAway > Open, "WhenAway is %d; it must be Share, Closed or Open", t.WhenAway)
	m.wrong(t.MinShare < 0, "MinShare is %d; it must be 0 (nothing is added to a share) or more", t.MinShare)
	m.wrong(t.MinShare > maxUnits, "MinShare is %d; it must be at most %d", t.MinShare, maxUnits)
	m.wrong(t.Withhold < 0 || t.Withhold > 0 && t.Withhold < lease,
		"Withhold is %v; it must be 0 (nothing is withheld) or at least the lease, %v", t.Withhold, lease)
	m.wrong(t.Withhold > longestWithhold, "Withhold is %v; it must be at most %v", t.Withhold, longestWithhold)
	m.wrong(t.IdleHold > longestHold, "IdleHold is %v; it must be at most %v", t.IdleHold, longestHold)
	return errors.Join(m...)
}

func isName(s string) bool {
	return s != "" && len(s) <= maxName && !strings.ContainsFunc(s, func(r rune) bool {
		return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune("-_./:", r))
	})
}

func notPrintable(r rune) bool { return r <= ' ' || r == 0x7f }
