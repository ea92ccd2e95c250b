package forebaytest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"example.com/forebay/cluster"
)

func TestStoreInMemory(t *testing.T) {
	TestStore(t, func(testing.TB) cluster.Store { return NewStore(1) })
}

// brokenStore is a store that breaks one promise.
type brokenStore struct {
	*Store
	fault string

	mu    sync.Mutex // guards what follows
	heard int
	held  *cluster.Message
	one   bool
	stop  []context.CancelFunc // for what goes on too long
}

func (s *brokenStore) Exchange(ctx context.Context, r *cluster.Request) (cluster.Reply, error) {
	changed := *r
	switch s.fault {
	case "begins anew each time":
		s.Wipe()
	case "takes every request for a new one":
		s.mu.Lock()
		s.heard++
		changed.Number = uint64(s.heard)
		changed.Returned = 0
		if len(changed.Arrived) > 0 {
			changed.Arrived = []cluster.Run{{First: uint64(s.heard * 1000), Calls: changed.Arrived[0].Calls, Cost: 1}}
		}
		s.mu.Unlock()
	case "keeps all gates in one ledger":
		changed.Key = cluster.KeyOf("conformance", "g")
	case "cuts names at a brace":
		changed.Key = r.Key[:strings.LastIndex(r.Key, "{")] + r.Key[strings.Index(r.Key, "}"):]
	case "cuts long requests":
		changed.Arrived = changed.Arrived[:min(len(changed.Arrived), 1000)]
	case "ignores who leaves":
		changed.Leaving = false
	case "ignores contexts":
		ctx = context.WithoutCancel(ctx)
	}
	reply, err := s.Store.Exchange(ctx, &changed)
	switch s.fault {
	case "forgets the slots":
		reply.Slots = nil
	case "takes an end for a wrong set-up":
		if err != nil {
			err = fmt.Errorf("%w: %w", cluster.ErrSetup, err)
		}
	}
	return reply, err
}

func (s *brokenStore) Subscribe(ctx context.Context, channels []string, ready func(), heard func(cluster.Message)) error {
	hand := heard
	switch s.fault {
	case "loses messages":
		hand = func(cluster.Message) {}
	case "hands on to everybody":
		for _, c := range slices.Clone(channels) {
			if i := strings.LastIndex(c, ":a"); i > 0 {
				channels = append(channels, c[:i]+":b")
			}
		}
	case "changes the order":
		hand = func(m cluster.Message) { s.swapped(m, heard) }
	case "goes on after the end":
		later, stop := context.WithCancel(context.WithoutCancel(ctx))
		s.stop = append(s.stop, stop)
		go func() { _ = s.Store.Subscribe(later, channels, ready, heard) }()
		<-ctx.Done()
		return ctx.Err()
	case "says not why it ended":
		_ = s.Store.Subscribe(ctx, channels, ready, heard)
		return nil
	case "lets one hear at a time":
		s.mu.Lock()
		if s.one {
			hand = func(cluster.Message) {}
		}
		s.one = true
		s.mu.Unlock()
	case "never ends":
		later, stop := context.WithCancel(context.WithoutCancel(ctx))
		s.stop = append(s.stop, stop)
		ctx = later
	}
	return s.Store.Subscribe(ctx, channels, ready, hand)
}

// swapped hands on every two messages the wrong way round.
func (s *brokenStore) swapped(m cluster.Message, heard func(cluster.Message)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held == nil {
		s.held = &m
		return
	}
	heard(m)
	heard(*s.held)
	s.held = nil
}

func (s *brokenStore) Stats(ctx context.Context, key string) (cluster.State, error) {
	st, err := s.Store.Stats(ctx, key)
	switch s.fault {
	case "makes a step for Stats":
		s.Wipe()
	case "shows no members":
		st.Members = nil
	}
	return st, err
}

// brokenStores says for each check which faults it has to find.
var brokenStores = map[string][]string{
	"an exchange is one step of the ledger":                    {"begins anew each time", "takes every request for a new one"},
	"the same request twice is one":                            {"takes every request for a new one"},
	"a grant reaches the instance that waits, and no other":    {"loses messages", "hands on to everybody"},
	"what is published on a channel comes in order":            {"changes the order", "loses messages"},
	"exchanges at the same time are steps one after the other": {"keeps all gates in one ledger", "begins anew each time"},
	"gates do not touch each other, whatever they are called":  {"keeps all gates in one ledger", "cuts names at a brace"},
	"a request may be long":                                    {"cuts long requests"},
	"a fenced gate lends numbered slots":                       {"forgets the slots"},
	"Stats shows the ledger and changes nothing":               {"makes a step for Stats", "shows no members"},
	"whoever leaves is gone":                                   {"ignores who leaves"},
	"an exchange ends with its context":                        {"ignores contexts", "takes an end for a wrong set-up"},
	"a subscription ends with its context":                     {"goes on after the end", "says not why it ended", "never ends"},
	"two subscriptions hear the same":                          {"lets one hear at a time", "loses messages"},
}

// TestBrokenStores shows that each check can fail: it finds what is wrong with a store
// that breaks just the promise it is about.
func TestBrokenStores(t *testing.T) {
	for _, c := range storeChecks {
		if len(brokenStores[c.name]) == 0 {
			t.Errorf("no broken store shows that the check %q can fail", c.name)
		}
		for _, fault := range brokenStores[c.name] {
			t.Run(c.name+"/"+fault, func(t *testing.T) {
				v := examineStore(t, c, &brokenStore{Store: NewStore(1), fault: fault})
				if !v.Failed() {
					t.Errorf("the check passes a store that %s", fault)
				}
				for _, f := range v.faults[:min(3, len(v.faults))] {
					t.Logf("found: %s", f)
				}
			})
		}
	}
	for name := range brokenStores {
		if !slices.ContainsFunc(storeChecks, func(c storeCheck) bool { return c.name == name }) {
			t.Errorf("there is no check %q", name)
		}
	}
}

// examineStore runs one check in a bubble and returns what it found.
func examineStore(t *testing.T, c storeCheck, s *brokenStore) *verdict {
	t.Helper()
	var v *verdict
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		v = &verdict{TB: t}
		done := make(chan struct{})
		go func() { // a goroutine of its own, which Fatalf ends
			defer close(done)
			c.run(&storeRig{TB: contextual{v, ctx}, Store: s, name: "conformance"})
		}()
		<-done
		stop()
		for _, stop := range s.stop {
			stop()
		}
	})
	return v
}

// contextual is a verdict whose context ends before the bubble does.
type contextual struct {
	*verdict
	ctx context.Context
}

func (c contextual) Context() context.Context { return c.ctx }
