package cluster

import (
	"context"
	"sync"
	"time"
)

// subscriber hears what ledgers publish, for all gates of a cluster over one
// subscription. What it misses while that is renewed or lost, the next exchange says.
type subscriber struct {
	cluster *Cluster
	again   chan struct{} // there are other channels to hear

	mu    sync.Mutex // guards renew
	renew context.CancelFunc
}

// Pauses before a subscription is tried again: the first is short, as most servers are
// back at once, and each is twice the one before. Meanwhile the exchanges say what is
// missed, at the pace of deafBeat, so the longest may be a heartbeat.
const (
	firstResubscribe   = 20 * time.Millisecond
	longestResubscribe = 500 * time.Millisecond
)

func newSubscriber(c *Cluster) *subscriber {
	return &subscriber{cluster: c, again: make(chan struct{}, 1)}
}

// changed says that there are other channels to hear.
func (s *subscriber) changed() {
	select {
	case s.again <- struct{}{}:
	default:
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.renew != nil {
		s.renew()
	}
}

// run subscribes, again and again, until ctx ends.
func (s *subscriber) run(ctx context.Context) {
	wait := firstResubscribe
	for {
		select {
		case <-s.again:
		case <-ctx.Done():
			return
		}
		if s.subscribe(ctx) {
			wait = firstResubscribe
		}
		if ctx.Err() == nil && len(s.again) == 0 {
			wait = s.pause(ctx, wait)
		}
	}
}

// pause waits before the next subscription, and returns how long the pause after is.
func (s *subscriber) pause(ctx context.Context, wait time.Duration) time.Duration {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
	select {
	case s.again <- struct{}{}:
	default:
	}
	return min(2*wait, longestResubscribe)
}

// subscribe hears until the subscription is lost, ctx ends, or there is more to hear. It
// reports whether it heard anything.
func (s *subscriber) subscribe(ctx context.Context) (ready bool) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s.mu.Lock()
	s.renew = cancel
	s.mu.Unlock()
	heard := s.cluster.all() // after renew is set: who comes later, renews
	channels := map[string][]*supplier{}
	for _, p := range heard {
		channels[p.key] = append(channels[p.key], p)
		channels[p.channel] = append(channels[p.channel], p)
	}
	names := make([]string, 0, len(channels))
	for name := range channels {
		names = append(names, name)
	}
	err := s.cluster.config.Store.Subscribe(ctx, names, func() {
		ready = true
		for _, p := range heard {
			p.hearing(true)
		}
	}, func(m Message) {
		if news, err := ParseNews(m.Text); err == nil { // what is none of ours says nothing
			for _, p := range channels[m.Channel] {
				p.hear(news)
			}
		}
	})
	lost := err != nil && ready && ctx.Err() == nil
	for _, p := range heard {
		p.hearing(false)
		if lost {
			p.change((*loan).cut)
		}
	}
	return ready
}
