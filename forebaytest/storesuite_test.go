package forebaytest

import (
	"context"
	"sync"
	"testing"
	"time"

	"example.com/forebay/cluster"
)

// smallStore is the least that is a store.
type smallStore struct {
	mu      sync.Mutex
	ledgers map[string]*cluster.Ledger
	subs    map[chan cluster.Message]map[string]bool
}

func (s *smallStore) Exchange(ctx context.Context, r *cluster.Request) (cluster.Reply, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return cluster.Reply{}, err
	}
	l := s.ledgers[r.Key]
	if l == nil {
		l = &cluster.Ledger{}
		s.ledgers[r.Key] = l
	}
	reply, messages := l.Exchange(cluster.Server{Wall: time.Now(), Identity: "x", Uptime: time.Hour, Subscribers: func(string) int { return 0 }}, r)
	for _, m := range messages {
		for ch, channels := range s.subs {
			if channels[m.Channel] {
				ch <- m
			}
		}
	}
	return reply, nil
}

func (s *smallStore) Subscribe(ctx context.Context, channels []string, ready func(), heard func(cluster.Message)) error {
	ch := make(chan cluster.Message, 10000)
	set := map[string]bool{}
	for _, c := range channels {
		set[c] = true
	}
	s.mu.Lock()
	s.subs[ch] = set
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		delete(s.subs, ch)
		s.mu.Unlock()
	}()
	ready()
	for {
		select {
		case m := <-ch:
			heard(m)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (s *smallStore) Stats(_ context.Context, key string) (cluster.State, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l := s.ledgers[key]; l != nil {
		return l.State(), nil
	}
	return cluster.State{}, nil
}

func TestSmallStore(t *testing.T) {
	TestStore(t, func(testing.TB) cluster.Store {
		return &smallStore{ledgers: map[string]*cluster.Ledger{}, subs: map[chan cluster.Message]map[string]bool{}}
	})
}
