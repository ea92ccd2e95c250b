package rivals

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"
)

// goRedisClient takes a connection from the pool for each command, or sends those
// that come at the same time together if it is pipelined. Blocking commands always
// take one from the pool.
type goRedisClient struct {
	*redis.Client
	commands redis.Cmdable
}

func connectGoRedis(c Config) (client, error) {
	conn := redis.NewClient(goRedisOptions(c))
	return goRedisClient{conn, conn}, conn.Ping(context.Background()).Err()
}

func connectPipelined(c Config) (client, error) {
	conn := redis.NewClient(goRedisOptions(c))
	pipe, err := conn.AutoPipelineWithOptions(&redis.AutoPipelineOptions{MaxConcurrentBatches: batches, Unordered: true})
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return goRedisClient{conn, pipe}, conn.Ping(context.Background()).Err()
}

// batches are under way at once: the fastest of 1, 2, 4 and 8 at 256 callers, and
// alike at 16. The order of commands does not matter, as each caller has one.
const batches = 4

// goRedisOptions give every caller a connection: with fewer they stand in line for
// one, and a blocking command keeps its own for as long as it waits.
func goRedisOptions(c Config) *redis.Options {
	return &redis.Options{ // of 4 to 257 connections none was clearly faster
		Addr:            c.Addr,
		PoolSize:        max(c.Callers, 1) + 1,
		DisableIdentity: true,
	}
}

func (c goRedisClient) run(ctx context.Context, s *script, key string, args ...string) (int64, error) {
	values := make([]any, len(args))
	for i, a := range args {
		values[i] = a
	}
	keys := []string{key}
	n, err := c.commands.EvalSha(ctx, s.hash, keys, values...).Int64()
	if redis.HasErrorPrefix(err, "NOSCRIPT") {
		return c.commands.Eval(ctx, s.source, keys, values...).Int64()
	}
	return n, err
}

func (c goRedisClient) exists(ctx context.Context, key string) (bool, error) {
	n, err := c.commands.Exists(ctx, key).Result()
	return n > 0, err
}

func (c goRedisClient) set(ctx context.Context, key, value string, ttl time.Duration) error {
	return c.commands.Set(ctx, key, value, ttl).Err()
}

func (c goRedisClient) del(ctx context.Context, key string) error {
	return c.commands.Del(ctx, key).Err()
}

func (c goRedisClient) lpush(ctx context.Context, key, value string) error {
	return c.commands.LPush(ctx, key, value).Err()
}

func (c goRedisClient) lpop(ctx context.Context, key string) (string, error) {
	value, err := c.commands.LPop(ctx, key).Result()
	if errors.Is(err, redis.Nil) {
		return "", errNil
	}
	return value, err
}

// blpop waits for whole seconds: go-redis rounds up.
func (c goRedisClient) blpop(ctx context.Context, key string, wait time.Duration) (string, error) {
	pair, err := c.Client.BLPop(ctx, wait, key).Result()
	switch {
	case errors.Is(err, redis.Nil):
		return "", errNil
	case err != nil:
		return "", err
	}
	return pair[1], nil
}

func (c goRedisClient) zrem(ctx context.Context, key, member string) error {
	return c.commands.ZRem(ctx, key, member).Err()
}

func (c goRedisClient) decr(ctx context.Context, key string) error {
	return c.commands.Decr(ctx, key).Err()
}

func (c goRedisClient) close() error { return c.Client.Close() }
