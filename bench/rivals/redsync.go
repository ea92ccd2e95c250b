package rivals

import (
	"context"
	"errors"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/go-redsync/redsync/v4"
	syncpool "github.com/go-redsync/redsync/v4/redis"
	syncgoredis "github.com/go-redsync/redsync/v4/redis/goredis/v9"
	syncrueidis "github.com/go-redsync/redsync/v4/redis/rueidis"
	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidiscompat"
)

// mutexes is redsync, which knows locks only: a limit of N is N of them. A caller
// tries a few, starting anywhere, and comes again.
type mutexes struct {
	Config
	locks   *redsync.Redsync
	options []redsync.Option
	drop    func() error
}

// redsyncTTL is redsync's own default.
const redsyncTTL = 8 * time.Second

// tries is how many locks a caller tries before it pauses. An attempt in vain costs
// two commands, so that trying all would keep the server busy with refusals.
const tries = 2

func openRedsyncRueidis(c Config) (Semaphore, error) {
	conn, err := rueidis.NewClient(rueidisOptions(c))
	if err != nil {
		return nil, err
	}
	return newMutexes(c, syncrueidis.NewPool(rueidiscompat.NewAdapter(conn)), func() error { conn.Close(); return nil }), nil
}

func openRedsyncGoRedis(c Config) (Semaphore, error) {
	conn := redis.NewClient(goRedisOptions(c))
	if err := conn.Ping(context.Background()).Err(); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return newMutexes(c, syncgoredis.NewPool(conn), conn.Close), nil
}

func newMutexes(c Config, pool syncpool.Pool, drop func() error) Semaphore {
	return &mutexes{
		Config: c, locks: redsync.New(pool), drop: drop,
		options: []redsync.Option{
			redsync.WithExpiry(c.leaseOr(redsyncTTL)), redsync.WithTries(1),
			// Half of the expiry for an answer, instead of a twentieth: on a busy machine
			// attempts failed of that alone.
			redsync.WithTimeoutFactor(0.5),
		},
	}
}

// Acquire tries locks until one is free.
func (m *mutexes) Acquire(ctx context.Context) (func(), error) {
	var held *redsync.Mutex
	err := m.poll(ctx, func() (bool, error) {
		first := rand.N(m.Limit)
		for i := range min(tries, m.Limit) {
			lock := m.locks.NewMutex(m.Name+":"+strconv.Itoa((first+i)%m.Limit), m.options...)
			err := lock.TryLockContext(ctx)
			var taken *redsync.ErrTaken
			switch {
			case err == nil:
				held = lock
				return true, nil
			case !errors.As(err, &taken):
				return false, err
			}
		}
		return false, nil
	})
	if err != nil {
		return m.failed(ctx, err)
	}
	return func() {
		letGo(func(ctx context.Context) error { _, err := held.UnlockContext(ctx); return err })
	}, nil
}

// Close drops the connections.
func (m *mutexes) Close() error { return m.drop() }
