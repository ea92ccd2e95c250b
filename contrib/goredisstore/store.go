package goredisstore

import (
	"context"

	"github.com/redis/go-redis/v9"

	"example.com/forebay/cluster"
	"example.com/forebay/internal/redisledger"
)

// Store keeps the ledgers of clustered gates in Redis. It is a [cluster.Store], and
// safe for concurrent use. What [Dial] and [Open] return is to be closed.
type Store struct {
	core   *redisledger.Core
	client *client
}

var _ cluster.Store = (*Store)(nil)

// New returns a store that goes through the caller's client, for one server, for
// Sentinels or for a Cluster, and leaves it open. Some options matter, see the
// package's documentation. A redis.Ring does not do: it spreads keys over servers that
// know nothing of each other.
func New(c redis.UniversalClient) *Store { return newStore(c, "Redis", false) }

func newStore(c redis.UniversalClient, where string, ours bool) *Store {
	s := &Store{client: &client{redis: c, where: where, ours: ours}}
	s.core = redisledger.New("goredisstore", s.client)
	return s
}

// Exchange does what [cluster.Store] says: it costs one round trip.
func (s *Store) Exchange(ctx context.Context, r *cluster.Request) (cluster.Reply, error) {
	return s.core.Exchange(ctx, r)
}

// Subscribe does what [cluster.Store] says, over a connection of its own, on which
// nothing is sent while nothing happens.
func (s *Store) Subscribe(ctx context.Context, channels []string, ready func(), heard func(cluster.Message)) error {
	return s.core.Subscribe(ctx, channels, ready, heard)
}

// Stats returns the ledger of one gate as it stands.
func (s *Store) Stats(ctx context.Context, key string) (cluster.State, error) {
	return s.core.Stats(ctx, key)
}

// Inspect looks at the servers before anything is trusted to them: at their version
// and their settings, and at what the store's user may do with the ledgers of clusters
// of this name. It leaves nothing behind. An error says why they cannot be asked.
func (s *Store) Inspect(ctx context.Context, name string) (cluster.Inspection, error) {
	return s.core.Inspect(ctx, name)
}

// Reloads returns how often a server did not know the script, and was sent it again:
// after a restart, a failover or SCRIPT FLUSH, once.
func (s *Store) Reloads() uint64 { return s.core.Reloads() }

// Close ends what is under way and closes the client, unless it is the caller's. A
// second Close does nothing.
func (s *Store) Close() {
	s.core.Close()
	s.client.close()
}
