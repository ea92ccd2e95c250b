package redisstore

import (
	"context"
	"io"

	"github.com/redis/rueidis"

	"example.com/forebay/cluster"
)

// Subscribe hands on messages over a connection of its own, so that whoever hears
// them cannot hold up exchanges.
func (c *client) Subscribe(ctx context.Context, channels []string, ready func(), heard func(cluster.Message)) error {
	r, err := c.reach(ctx)
	if err != nil {
		return err
	}
	d, err := c.dedicate(ctx, r)
	if err != nil {
		return err
	}
	// It may have to wait for a server that is silent; nobody here has to.
	defer c.wait.Go(d.Close)

	confirmed := map[string]bool{} // touched by the connection's reader only
	lost := d.SetPubSubHooks(rueidis.PubSubHooks{
		OnMessage: func(m rueidis.PubSubMessage) {
			heard(cluster.Message{Channel: m.Channel, Text: m.Message})
		},
		OnSubscription: func(s rueidis.PubSubSubscription) {
			if s.Kind == "subscribe" && !confirmed[s.Channel] {
				confirmed[s.Channel] = true
				if len(confirmed) == len(channels) {
					ready()
				}
			}
		},
	})
	if err := d.Do(ctx, d.B().Subscribe().Channel(channels...).Build()).Error(); err != nil {
		return refused(err)
	}
	select {
	case err, ok := <-lost:
		if !ok || err == nil {
			err = io.EOF
		}
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// dedicate takes a connection, which may have to be made; that takes its own time,
// whoever waits.
func (c *client) dedicate(ctx context.Context, r rueidis.Client) (rueidis.DedicatedClient, error) {
	made := make(chan rueidis.DedicatedClient, 1)
	c.wait.Go(func() {
		d, _ := r.Dedicate()
		made <- d
	})
	select {
	case d := <-made:
		return d, nil
	case <-ctx.Done():
		c.wait.Go(func() { (<-made).Close() })
		return nil, ctx.Err()
	}
}
