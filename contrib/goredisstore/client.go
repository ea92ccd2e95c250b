package goredisstore

import (
	"context"
	"errors"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"

	"example.com/forebay/cluster"
	"example.com/forebay/internal/redisledger"
)

// client is go-redis as the ledger's core needs it.
type client struct {
	redis redis.UniversalClient
	where string
	ours  bool

	wait sync.WaitGroup // for commands that nobody waits for any more
	once sync.Once      // closes redis
}

// Where returns the address that the client was opened with, or the one it has.
func (c *client) Where() string {
	switch r := c.redis.(type) {
	case *redis.Client:
		if !c.ours {
			return r.Options().Addr
		}
	case *redis.ClusterClient:
		if !c.ours {
			return strings.Join(r.Options().Addrs, ", ")
		}
	}
	return c.where
}

func (c *client) close() {
	if c.ours {
		c.once.Do(func() { _ = c.redis.Close() })
	}
	c.wait.Wait()
}

// processor is what sends one command: a client or a connection.
type processor interface {
	Process(ctx context.Context, cmd redis.Cmder) error
}

// Do sends one command to the node that has the key.
func (c *client) Do(ctx context.Context, key string, command []string) (any, error) {
	return c.do(ctx, c.redis, command)
}

// Over sends commands over one connection to the node that has the key.
func (c *client) Over(ctx context.Context, key string, f func(redisledger.Do) error) error {
	node := c.redis
	if r, ok := node.(*redis.ClusterClient); ok {
		n, err := r.MasterForKey(ctx, key)
		if err != nil {
			return refused(err)
		}
		node = n
	}
	r, ok := node.(interface{ Conn() *redis.Conn })
	if !ok {
		return errors.New("goredisstore: this kind of client gives out no connections")
	}
	conn := r.Conn()
	defer conn.Close()
	return f(func(ctx context.Context, command []string) (any, error) {
		return c.do(ctx, conn, command)
	})
}

// do sends a command and returns when it is answered, or its context ends: go-redis
// does not look at that while it reads, and at deadlines only if it is told to.
func (c *client) do(ctx context.Context, p processor, command []string) (any, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	args := make([]any, len(command))
	for i, a := range command {
		args[i] = a
	}
	cmd := single{redis.NewCmd(ctx, args...)}
	done := make(chan error, 1)
	c.wait.Go(func() { done <- p.Process(ctx, cmd) })
	select {
	case err := <-done:
		if err != nil && !errors.Is(err, redis.Nil) {
			return nil, refused(err)
		}
		return plain(cmd.Val()), nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// single is a command that is not sent again when its answer was lost, whatever the
// client is set to.
type single struct{ *redis.Cmd }

// NoRetry says so.
func (single) NoRetry() bool { return true }

// plain returns an answer as a string, an int64, nil, or a []any of them, in which the
// names and values of a map stand in turn.
func plain(v any) any {
	switch v := v.(type) {
	case map[any]any:
		all := make([]any, 0, 2*len(v))
		for name, value := range v {
			all = append(all, plain(name), plain(value))
		}
		return all
	case []any:
		for i := range v {
			v[i] = plain(v[i])
		}
		return v
	case error: // within an array
		return v.Error()
	}
	return v
}

// refused makes an error that a server answered what it is for the core.
func refused(err error) error {
	var r redis.Error
	if !errors.As(err, &r) || errors.Is(err, redis.Nil) {
		return err
	}
	return redisledger.Refused(r.Error())
}

// Subscribe hands on messages over a connection of its own.
func (c *client) Subscribe(ctx context.Context, channels []string, ready func(), heard func(cluster.Message)) error {
	sub := c.redis.Subscribe(ctx)
	defer sub.Close()
	// It may have to wait for a server that is silent; nobody here has to.
	stopped := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(stopped)
		_ = sub.Close()
	})
	defer func() {
		if !stop() {
			<-stopped
		}
	}()
	if err := sub.Subscribe(ctx, channels...); err != nil {
		return refused(err)
	}
	confirmed := map[string]bool{}
	for {
		m, err := sub.Receive(ctx)
		if err != nil {
			return refused(err)
		}
		switch m := m.(type) {
		case *redis.Message:
			heard(cluster.Message{Channel: m.Channel, Text: m.Payload})
		case *redis.Subscription:
			if m.Kind == "subscribe" && !confirmed[m.Channel] {
				confirmed[m.Channel] = true
				if len(confirmed) == len(channels) {
					ready()
				}
			}
		}
	}
}
