package redisledger

import (
	"context"
	"errors"
	"sync"
	"time"

	"example.com/forebay/cluster"
)

// subscriptions knows when a subscription has to be made anew although its connection
// stands: when another server, or an emptied one, answers the exchanges. A primary
// that is frozen, or cut off from its Sentinels, may keep its connections for long
// after another has taken its place, and nothing is published on it.
type subscriptions struct {
	mu     sync.Mutex        // guards what follows
	epochs map[string]uint64 // by ledger, as last answered
	open   map[*subscription]bool
	wait   sync.WaitGroup // for the client's side of those that are open
}

// subscription is one call of Subscribe.
type subscription struct {
	stop  context.CancelFunc // ends the client's side of it
	moved chan struct{}      // closed when the caller is to subscribe again
	left  bool               // it is closed

	mu   sync.Mutex // guards deaf, and is held while a message is handed on
	deaf bool
}

// lingering is for how long a subscription that was left waits for the next.
const lingering = 10 * time.Second

var errMoved = errors.New("another server, or an emptied one, keeps the ledger now")

// spoke notes the epoch that a ledger is in. When it is another than before, every
// subscription that is open returns; what the other ledgers were in is forgotten, so
// that one event ends subscriptions once.
func (s *subscriptions) spoke(key string, epoch uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before, known := s.epochs[key]
	if s.epochs == nil || known && before != epoch {
		s.epochs = map[string]uint64{}
	}
	s.epochs[key] = epoch
	if !known || before == epoch {
		return
	}
	for sub := range s.open {
		if !sub.left {
			sub.left = true
			close(sub.moved)
		}
	}
}

// subscribe returns when the client's side ends, or the caller is to subscribe again.
func (s *subscriptions) subscribe(ctx context.Context, client Client, channels []string, ready func(), heard func(cluster.Message)) error {
	inner, stop := context.WithCancel(context.WithoutCancel(ctx))
	sub := &subscription{stop: stop, moved: make(chan struct{})}
	s.add(sub)
	defer sub.deafen() // the client's side may go on for a moment
	ended := make(chan error, 1)
	s.wait.Go(func() {
		defer stop()
		err := client.Subscribe(inner, channels, func() {
			s.replaceBy(sub)
			ready()
		}, func(m cluster.Message) {
			sub.mu.Lock()
			defer sub.mu.Unlock()
			if !sub.deaf {
				heard(m)
			}
		})
		s.remove(sub)
		ended <- err
	})
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
		stop()
		<-ended
		return ctx.Err()
	case <-sub.moved:
		// It stays open, deaf, until the next one hears: a ledger counts those that are
		// subscribed to learn how many it has to hear from.
		time.AfterFunc(lingering, stop)
		return errMoved
	}
}

// deafen makes that nothing more is handed on.
func (sub *subscription) deafen() {
	sub.mu.Lock()
	defer sub.mu.Unlock()
	sub.deaf = true
}

func (s *subscriptions) add(sub *subscription) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open == nil {
		s.open = map[*subscription]bool{}
	}
	s.open[sub] = true
}

func (s *subscriptions) remove(sub *subscription) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, sub)
}

// replaceBy ends those that were left, now that sub is ready.
func (s *subscriptions) replaceBy(sub *subscription) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for other := range s.open {
		if other != sub && other.left {
			other.stop()
		}
	}
}

// close ends all that are open and waits for that.
func (s *subscriptions) close() {
	s.mu.Lock()
	for sub := range s.open {
		sub.stop()
	}
	s.mu.Unlock()
	s.wait.Wait()
}
