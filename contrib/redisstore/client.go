package redisstore

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/redis/rueidis"

	"example.com/forebay/internal/redisledger"
)

// client is rueidis as the ledger's core needs it.
type client struct {
	where string
	open  func() (rueidis.Client, error) // nil: made is the caller's

	mu     sync.Mutex // guards what follows
	made   rueidis.Client
	making *making
	closed bool

	wait sync.WaitGroup // for connections that are being made, or ended
}

// making is an attempt to reach the servers.
type making struct {
	done chan struct{} // closed when it has ended
	c    rueidis.Client
	err  error
}

var errClosed = errors.New("the store is closed")

// reach returns the client, which is made when it is first needed: a program has to
// start while the servers are away. An attempt takes its own time, whoever waits.
func (c *client) reach(ctx context.Context) (rueidis.Client, error) {
	c.mu.Lock()
	if c.made != nil || c.closed {
		defer c.mu.Unlock()
		if c.closed {
			return nil, errClosed
		}
		return c.made, nil
	}
	m := c.making
	if m == nil {
		m = &making{done: make(chan struct{})}
		c.making = m
		c.wait.Go(func() { c.make(m) })
	}
	c.mu.Unlock()
	select {
	case <-m.done:
		return m.c, m.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (c *client) make(m *making) {
	made, err := c.open()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.making = nil
	switch {
	case err != nil:
		m.err = refused(err)
		if made != nil {
			made.Close()
		}
	case c.closed:
		m.err = errClosed
		made.Close()
	default:
		c.made, m.c = made, made
	}
	close(m.done)
}

func (c *client) close() {
	c.mu.Lock()
	made, making, ours := c.made, c.making, c.open != nil
	c.closed = true
	c.mu.Unlock()
	if making != nil {
		<-making.done
	}
	if ours && made != nil {
		made.Close()
	}
}

// Where returns the address that the client was opened with, or those it knows.
func (c *client) Where() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open == nil && c.made != nil {
		return strings.Join(slices.Sorted(maps.Keys(c.made.Nodes())), ", ")
	}
	return c.where
}

// Do sends one command to the node that has the key.
func (c *client) Do(ctx context.Context, key string, command []string) (any, error) {
	r, err := c.reach(ctx)
	if err != nil {
		return nil, err
	}
	answer, err := value(r.Do(ctx, build(r, key, command)))
	return answer, lone(r, err)
}

// Over sends commands over one connection to the node that has the key.
func (c *client) Over(ctx context.Context, key string, f func(redisledger.Do) error) error {
	r, err := c.reach(ctx)
	if err != nil {
		return err
	}
	return r.Dedicated(func(d rueidis.DedicatedClient) error {
		return f(func(ctx context.Context, command []string) (any, error) {
			return value(d.Do(ctx, build(d, key, command)))
		})
	})
}

// lone finds that a single server turns out to be a node of a Cluster. rueidis follows
// MOVED by itself where it knows of one.
func lone(r rueidis.Client, err error) error {
	var refusal redisledger.Refusal
	if errors.As(err, &refusal) && strings.HasPrefix(string(refusal), "MOVED ") && r.Mode() != rueidis.ClientModeCluster {
		return &redisledger.Setup{Err: err, Remedy: "it is a node of a Cluster; give the user the right +cluster|slots, or the address another node with addr="}
	}
	return err
}
