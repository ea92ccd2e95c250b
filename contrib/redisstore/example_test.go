package redisstore_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"example.com/forebay/cluster"
	"example.com/forebay/contrib/redisstore"
)

// The servers may be away as a program starts. What is wrong for good is found by a
// look at them.
func ExampleStore_Inspect() {
	store, err := redisstore.Dial("redis://gates:PASSWORD@127.0.0.1:1")
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	ctx, stop := context.WithTimeout(context.Background(), time.Second)
	defer stop()
	switch seen, err := store.Inspect(ctx, "forebay"); {
	case errors.Is(err, cluster.ErrSetup):
		fmt.Println("to be mended:", err)
	case err != nil:
		fmt.Println("to be tried again:", err)
	case len(seen.Missing) > 0:
		fmt.Println("the user lacks", seen.Missing)
	}
	// Output:
	// to be tried again: redisstore: 127.0.0.1:1: dial tcp 127.0.0.1:1: connect: connection refused
}
