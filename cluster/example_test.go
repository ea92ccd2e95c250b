package cluster_test

import (
	"context"
	"fmt"
	"time"

	"example.com/forebay"
	"example.com/forebay/cluster"
	"example.com/forebay/forebaytest"
)

// Two processes share a limit of three. Here they are one, and the store is in memory;
// in earnest each has a store of its own on the same Redis.
func Example() {
	store := forebaytest.NewStore(1)
	process := func(name string) (*forebay.Gate, *cluster.Cluster) {
		shared, err := cluster.New(cluster.Config{Store: store, Host: name})
		if err != nil {
			panic(err)
		}
		gate, err := forebay.New(forebay.Config{
			Name: "reports", MaxInFlight: 3, MaxWait: time.Second, Cluster: shared,
		})
		if err != nil {
			panic(err)
		}
		return gate, shared
	}
	web1, cluster1 := process("web1")
	web2, cluster2 := process("web2")
	defer cluster1.Close(context.Background())

	var leases []forebay.Lease
	for _, gate := range []*forebay.Gate{web1, web2, web1} {
		l, err := gate.Acquire(context.Background(), forebay.Call{})
		if err != nil {
			panic(err)
		}
		leases = append(leases, l)
	}
	_, ok := web2.TryAcquire(forebay.Call{})
	fmt.Println("a fourth at the same time:", ok)

	leases[0].Release()
	l, err := web2.Acquire(context.Background(), forebay.Call{})
	fmt.Println("the slot that web1 gave back, at web2:", l.Live(), err)

	for _, l := range append(leases, l) {
		l.Release()
	}
	fmt.Println("web2 leaves:", cluster2.Close(context.Background()))
	// Output:
	// a fourth at the same time: false
	// the slot that web1 gave back, at web2: true <nil>
	// web2 leaves: <nil>
}
