package cluster_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"example.com/forebay/cluster"
	"example.com/forebay/forebaytest/redistest"
)

// TestTwoLayouts: programs that keep the ledger in different forms take each other's for
// lost. As long as both speak nobody is lent anything, and nobody loses what it holds;
// then whoever is left goes on.
func TestTwoLayouts(t *testing.T) {
	server := redistest.Start(t, redistest.Config{})
	ours := newOnRedis(t, server, cluster.KeyOf("t", "g"))
	theirs := newOnRedis(t, server, ours.key)
	source, _ := cluster.Script()
	other := strings.NewReplacer("E = {3, ", "E = {4, ", "E[LAYOUT] ~= 3", "E[LAYOUT] ~= 4").Replace(source)
	if other == source {
		t.Fatal("the script does not say its layout where this test looks for it")
	}
	theirs.sha = theirs.talk.do("SCRIPT", "LOAD", other).(string)

	const lease, tick = 2 * time.Second, 500 * time.Millisecond
	now := 10 * time.Hour
	speak := func(side *onRedis, r *cluster.Request) cluster.Reply {
		r.Number++
		now += tick
		reply, _ := side.Exchange(fmt.Sprintf("%d|server|%d|", now.Milliseconds(), time.Hour.Milliseconds()), r)
		if reply.Epoch != r.Epoch {
			r.Returned = reply.Returned
		}
		r.Epoch, r.Granted, r.Arrived = reply.Epoch, reply.Granted, nil
		r.Claim = int(r.Granted - r.Returned)
		return reply
	}
	instance := func(name string) *cluster.Request {
		return &cluster.Request{
			Key: ours.key, Instance: name, Host: name, Limit: 3, Lease: lease,
			Arrived: []cluster.Run{{First: 1, Calls: 2, Cost: 1}},
		}
	}
	a, b := instance("a"), instance("b")
	speak(ours, a)
	for range 20 {
		if speak(theirs, b); b.Claim != 0 {
			t.Fatalf("the other program lends %d", b.Claim)
		}
		if reply := speak(ours, a); a.Claim != 2 || reply.Learning == 0 {
			t.Fatalf("a holds %d of 2: %+v", a.Claim, reply)
		}
	}
	for range 1 + int(lease*8/5/tick) {
		speak(ours, a)
	}
	c := instance("c")
	if speak(ours, c); a.Claim != 2 || c.Claim != 1 {
		t.Errorf("a holds %d of 2, c %d of 1", a.Claim, c.Claim)
	}
}
