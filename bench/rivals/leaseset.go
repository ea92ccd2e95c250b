package rivals

import (
	"context"
	"crypto/rand"
	"strconv"
	"sync/atomic"
	"time"
)

// leaseSet is a sorted set of the holders by when their time ends, by the server's
// clock: one script to acquire, one command to release.
type leaseSet struct {
	client
	Config
	args []string
	self string        // of this process
	next atomic.Uint64 // holder
}

// leaseSetTTL is a common choice for work of a second or so.
const leaseSetTTL = 10 * time.Second

var leaseSetAcquire = newScript(`
local t = redis.call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now)
if redis.call('ZCARD', KEYS[1]) >= tonumber(ARGV[1]) then return 0 end
redis.call('ZADD', KEYS[1], now + ARGV[2], ARGV[3])
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return 1`)

func newLeaseSet(conn client, c Config) Semaphore {
	limit, ttl := strconv.Itoa(c.Limit), strconv.FormatInt(c.leaseOr(leaseSetTTL).Milliseconds(), 10)
	return &leaseSet{client: conn, Config: c, args: []string{limit, ttl}, self: rand.Text()[:8] + ":"}
}

// Acquire asks until there is room.
func (s *leaseSet) Acquire(ctx context.Context) (func(), error) {
	holder := s.self + strconv.FormatUint(s.next.Add(1), 36)
	err := s.poll(ctx, func() (bool, error) {
		n, err := s.run(ctx, leaseSetAcquire, s.Name, s.args[0], s.args[1], holder)
		return n == 1, err
	})
	if err != nil {
		return s.failed(ctx, err)
	}
	return func() { letGo(func(ctx context.Context) error { return s.zrem(ctx, s.Name, holder) }) }, nil
}

// Close drops the connections.
func (s *leaseSet) Close() error { return s.close() }
