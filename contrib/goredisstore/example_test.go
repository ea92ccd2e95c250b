package goredisstore_test

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"example.com/forebay/cluster"
	"example.com/forebay/contrib/goredisstore"
)

// A client that the program has anyway. Nobody answers at this address.
func ExampleNew() {
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1", DialerRetries: 1})
	defer client.Close()
	store := goredisstore.New(client)
	defer store.Close()

	ctx, stop := context.WithTimeout(context.Background(), time.Second)
	defer stop()
	_, err := store.Stats(ctx, cluster.KeyOf("forebay", "reports"))
	fmt.Println(err)
	// Output:
	// goredisstore: 127.0.0.1:1: dial tcp 127.0.0.1:1: connect: connection refused
}
