package goredisstore

import "github.com/redis/go-redis/v9"

// Store keeps the ledgers of clustered gates in Redis. It is safe for concurrent use.
type Store struct{ client redis.UniversalClient }

// New returns a store that uses the caller's client, and leaves it open.
func New(client redis.UniversalClient) *Store { return &Store{client: client} }
