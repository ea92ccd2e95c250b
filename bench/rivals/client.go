package rivals

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"time"
)

// client is the commands that the rivals send.
type client interface {
	run(ctx context.Context, s *script, key string, args ...string) (int64, error)
	exists(ctx context.Context, key string) (bool, error)
	set(ctx context.Context, key, value string, ttl time.Duration) error
	del(ctx context.Context, key string) error
	lpush(ctx context.Context, key, value string) error
	// lpop takes an element, and blpop waits for one; errNil says that none came.
	lpop(ctx context.Context, key string) (string, error)
	blpop(ctx context.Context, key string, wait time.Duration) (string, error)
	zrem(ctx context.Context, key, member string) error
	decr(ctx context.Context, key string) error
	close() error
}

// errNil is the answer of a pop in vain.
var errNil = errors.New("rivals: nothing came")

// script is a Lua script, which is sent once and then called by its hash.
type script struct{ source, hash string }

func newScript(source string) *script {
	sum := sha1.Sum([]byte(source))
	return &script{source, hex.EncodeToString(sum[:])}
}
