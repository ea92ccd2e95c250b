package rivals

import (
	"context"
	"strconv"
	"time"
)

// counter is a number that goes up and down: the least that a script can do for
// each request. Nobody knows whose the slots are; the number starts over once
// nobody came for the TTL.
type counter struct {
	client
	Config
	limit, ttl string
}

const counterTTL = time.Minute

var counterAcquire = newScript(`
if redis.call('INCR', KEYS[1]) > tonumber(ARGV[1]) then redis.call('DECR', KEYS[1]) return 0 end
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return 1`)

func newCounter(conn client, c Config) Semaphore {
	return &counter{conn, c, strconv.Itoa(c.Limit), strconv.FormatInt(c.leaseOr(counterTTL).Milliseconds(), 10)}
}

// Acquire asks until there is room.
func (c *counter) Acquire(ctx context.Context) (func(), error) {
	err := c.poll(ctx, func() (bool, error) {
		n, err := c.run(ctx, counterAcquire, c.Name, c.limit, c.ttl)
		return n == 1, err
	})
	if err != nil {
		return c.failed(ctx, err)
	}
	return func() { letGo(func(ctx context.Context) error { return c.decr(ctx, c.Name) }) }, nil
}

// Close drops the connections.
func (c *counter) Close() error { return c.close() }
