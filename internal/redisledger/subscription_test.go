package redisledger

import (
	"context"
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"example.com/forebay/cluster"
)

// listener is one call of Subscribe, in a bubble.
type listener struct {
	sub   *fakeSub // the client's side of it
	ready bool
	heard []cluster.Message
	ended chan error
	stop  context.CancelFunc
}

// listen subscribes in a bubble, and is ready.
func listen(t *testing.T, c *Core, f *fake) *listener {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	l := &listener{ended: make(chan error, 1), stop: stop}
	go func() {
		l.ended <- c.Subscribe(ctx, []string{"a"}, func() { l.ready = true }, func(m cluster.Message) { l.heard = append(l.heard, m) })
	}()
	l.sub = <-f.subs
	l.sub.ready()
	if !l.ready {
		t.Fatalf("it is not ready")
	}
	return l
}

// exchange is one after which the ledger of a gate is in an epoch.
func exchange(t *testing.T, c *Core, f *fake, key string, epoch byte) {
	t.Helper()
	f.answer = func(command []string) (any, error) {
		if len(command) == 4 {
			return int64(1), nil
		}
		return reply(epoch), nil
	}
	r := request()
	r.Key = key
	if _, err := c.Exchange(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
}

func newListened() (*Core, *fake) {
	f := &fake{subs: make(chan *fakeSub, 1)}
	return New("somestore", f), f
}

// TestAnotherServer shows that a subscription is made anew once something else keeps
// the ledger, and that the old one stays, deaf, until the new one hears.
func TestAnotherServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, f := newListened()
		defer c.Close()
		old := listen(t, c, f)
		exchange(t, c, f, "x", 1)
		exchange(t, c, f, "y", 1)
		exchange(t, c, f, "x", 1)
		if len(old.ended) != 0 {
			t.Fatalf("it ended while nothing changed: %v", <-old.ended)
		}
		old.sub.heard(cluster.Message{Text: "heard"})
		exchange(t, c, f, "x", 2)
		if err := <-old.ended; errors.Is(err, cluster.ErrSetup) || !errors.Is(err, errMoved) {
			t.Errorf("it ended with %v", err)
		}
		old.sub.heard(cluster.Message{Text: "late"})
		if len(old.heard) != 1 || old.sub.ctx.Err() != nil {
			t.Errorf("it heard %v, and the client's side is over: %v", old.heard, old.sub.ctx.Err())
		}
		fresh := listen(t, c, f)
		synctest.Wait()
		if old.sub.ctx.Err() == nil {
			t.Errorf("the old one goes on beside the new one")
		}
		exchange(t, c, f, "y", 2) // of the same event
		if len(fresh.ended) != 0 {
			t.Errorf("one event ended two subscriptions: %v", <-fresh.ended)
		}
		fresh.stop()
		if err := <-fresh.ended; !errors.Is(err, context.Canceled) {
			t.Errorf("its end: %v", err)
		}
	})
}

// TestNobodySubscribesAnew ends what was left in any case.
func TestNobodySubscribesAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, f := newListened()
		old := listen(t, c, f)
		exchange(t, c, f, "x", 1)
		exchange(t, c, f, "x", 2)
		<-old.ended
		time.Sleep(lingering)
		synctest.Wait()
		if old.sub.ctx.Err() == nil {
			t.Errorf("it goes on after %v", lingering)
		}
		c.Close()
	})
}

func TestSubscriptionLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, f := newListened()
		l := listen(t, c, f)
		l.sub.end <- io.EOF
		if err := <-l.ended; !errors.Is(err, io.EOF) {
			t.Errorf("it ended with %v, want why the connection was lost", err)
		}
		l = listen(t, c, f)
		go c.Close()
		if err := <-l.ended; err == nil {
			t.Errorf("a subscription of a closed store ended without a reason")
		}
	})
}
