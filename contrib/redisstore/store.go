package redisstore

import "github.com/redis/rueidis"

// Store keeps the ledgers of clustered gates in Redis. It is safe for concurrent use.
type Store struct{ client rueidis.Client }

// New returns a store that uses the caller's client, and leaves it open.
func New(client rueidis.Client) *Store { return &Store{client: client} }
