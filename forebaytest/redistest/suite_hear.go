package redistest

import (
	"context"
	"strconv"
	"time"

	"example.com/forebay/cluster"
)

var hearChecks = []check{
	{"a subscription that is lost ends, and can be made again", lostSubscription},
	{"a store that is subscribed and idle sends nothing", idle},
	{"a subscription that cannot be made in time", lateSubscription},
}

// subscriber is one call of Subscribe.
type subscriber struct {
	rig   *rig
	heard chan cluster.Message
	ended chan error
	stop  context.CancelFunc
}

// subscribe subscribes and returns when everything will be heard.
func (r *rig) subscribe(store Store, channels ...string) *subscriber {
	r.Helper()
	ctx, stop := context.WithCancel(r.Context())
	s := &subscriber{rig: r, heard: make(chan cluster.Message, 1000), ended: make(chan error, 1), stop: stop}
	ready := make(chan struct{})
	go func() {
		s.ended <- store.Subscribe(ctx, channels, func() { close(ready) }, func(m cluster.Message) { s.heard <- m })
	}()
	r.Cleanup(stop)
	select {
	case <-ready:
	case err := <-s.ended:
		r.Fatalf("Subscribe: %v", err)
	}
	return s
}

// hear returns the next message of a kind.
func (s *subscriber) hear(kind byte) cluster.News {
	s.rig.Helper()
	over := time.After(patience)
	for {
		select {
		case <-over:
			s.rig.Fatalf("it does not hear of %q", kind)
		case m := <-s.heard:
			if news, err := cluster.ParseNews(m.Text); err == nil && news.Kind == kind {
				return news
			}
		case err := <-s.ended:
			s.rig.Fatalf("the subscription ended: %v", err)
		}
	}
}

// lost returns why the subscription ended by itself.
func (s *subscriber) lost() error {
	s.rig.Helper()
	select {
	case err := <-s.ended:
		return err
	case <-time.After(patience):
		s.rig.Fatalf("the subscription goes on")
		return nil
	}
}

// end ends the subscription.
func (s *subscriber) end() {
	s.stop()
	<-s.ended
}

func lostSubscription(r *rig) {
	s := Start(r, Config{})
	store := r.open(s.Address())
	m := r.instance(store, "g")
	m.must()
	for range 3 {
		sub := r.subscribe(store, m.next.Key, "other")
		s.Must("CLIENT", "KILL", "TYPE", "pubsub")
		m.away(sub.lost(), s.Addr())
	}
	sub := r.subscribe(store, m.next.Key)
	m.next.Override = cluster.Override{Version: 1, Limit: 7}
	m.must()
	if news := sub.hear('l'); news.Count != 7 {
		r.Errorf("it hears of a limit of %d, want 7", news.Count)
	}
	s.Kill()
	m.away(sub.lost(), s.Addr())
	m.away(store.Subscribe(r.Context(), []string{"a"}, func() {}, func(cluster.Message) {}), s.Addr())
}

func idle(r *rig) {
	s := Start(r, Config{})
	store := r.open(s.Address())
	m := r.instance(store, "g")
	m.must()
	sub := r.subscribe(store, m.next.Key)
	seconds := func() int {
		n, _ := strconv.Atoi(s.Info("server")["uptime_in_seconds"])
		return n
	}
	before, since := s.Counts(), seconds()
	until(r, "some seconds without anything to do", func() bool { return seconds() >= since+4 })
	if sent := s.Counts().Since(before); sent.Calls() > 0 {
		r.Errorf("in four seconds without anything to do it sent %v, want nothing", sent)
	}
	m.next.Override = cluster.Override{Version: 1, Limit: 7}
	m.must()
	sub.hear('l')
}

func lateSubscription(r *rig) {
	s := Start(r, Config{})
	store := r.open(s.Address())
	m := r.instance(store, "g")
	m.must()
	s.Freeze()
	ctx, stop := context.WithTimeout(r.Context(), short)
	defer stop()
	m.away(store.Subscribe(ctx, []string{"a"}, func() { r.Errorf("it is ready") }, func(cluster.Message) {}), s.Addr())
	s.Thaw()
	r.subscribe(store, "a").end()
}
