package forebaytest

import (
	"context"
	"sync"
	"time"

	"example.com/forebay/cluster"
)

// subscription is one subscriber of a [Store], and what is on its way to it.
type subscription struct {
	chance   *chance
	channels map[string]bool
	wake     chan struct{}
	over     chan struct{}
	once     sync.Once

	mu    sync.Mutex // guards what follows
	watch stopwatch
	queue []push
}

// push is a message and when it arrives.
type push struct {
	at      time.Duration
	message cluster.Message
}

func newSubscription(c *chance, channels []string) *subscription {
	s := &subscription{
		chance: c, channels: map[string]bool{}, wake: make(chan struct{}, 1), over: make(chan struct{}), watch: startWatch(),
	}
	for _, name := range channels {
		s.channels[name] = true
	}
	return s
}

// publish sends a message, if its channel is heard and it is not lost. It arrives after
// those before.
func (s *subscription) publish(m cluster.Message) {
	if !s.channels[m.Channel] {
		return
	}
	takes, ok := s.chance.push()
	if !ok {
		return
	}
	s.mu.Lock()
	at := s.watch.elapsed() + takes
	if n := len(s.queue); n > 0 {
		at = max(at, s.queue[n-1].at)
	}
	s.queue = append(s.queue, push{at, m})
	s.mu.Unlock()
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// next takes what has arrived, or returns when to look again; below 0: when woken.
func (s *subscription) next() (m cluster.Message, wait time.Duration, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.queue) == 0 {
		return m, -1, false
	}
	if wait = s.queue[0].at - s.watch.elapsed(); wait > 0 {
		return m, wait, false
	}
	m = s.queue[0].message
	s.queue = s.queue[1:]
	return m, 0, true
}

func (s *subscription) end() { s.once.Do(func() { close(s.over) }) }

func (s *subscription) run(ctx context.Context, heard func(cluster.Message)) error {
	for {
		select {
		case <-s.over:
			return errLost
		default:
		}
		m, wait, ok := s.next()
		if ok {
			heard(m)
			continue
		}
		var due <-chan time.Time
		if wait > 0 {
			timer := time.NewTimer(wait)
			defer timer.Stop()
			due = timer.C
		}
		select {
		case <-s.wake:
		case <-due:
		case <-s.over:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
