package cli

import (
	"context"
	"time"

	"example.com/forebay/cluster"
	"example.com/forebay/cmd/forebay/internal/check"
	"example.com/forebay/cmd/forebay/internal/config"
	"example.com/forebay/cmd/forebay/internal/server"
)

// storePatience is how long Redis may take to be looked at.
const storePatience = 5 * time.Second

// lookAt looks at the Redis of a configuration and at the gates that are shared there.
func lookAt(cfg *config.Config) (seen check.Store, err error) {
	store, err := server.OpenRedis(*cfg.Cluster)
	if err != nil {
		return seen, err
	}
	defer store.Close()
	ctx, cancel := context.WithTimeout(context.Background(), storePatience)
	defer cancel()
	if seen.Inspection, err = store.Inspect(ctx, cfg.Cluster.Name); err != nil {
		return seen, err
	}
	seen.Gates = map[string]cluster.State{}
	for _, g := range cfg.Gates {
		if g.Terms == nil || len(seen.Missing) > 0 {
			continue // without its rights it cannot look
		}
		state, err := store.Stats(ctx, cluster.KeyOf(cfg.Cluster.Name, g.Name))
		if err != nil {
			return seen, err
		}
		seen.Gates[g.Name] = state
	}
	return seen, nil
}
