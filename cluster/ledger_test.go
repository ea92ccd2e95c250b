package cluster

import (
	"testing"
	"time"
)

// TestLendsAndTakesBack: one instance takes all, the next waits, and gets what the
// first gives back.
func TestLendsAndTakesBack(t *testing.T) {
	var l Ledger
	now := time.UnixMilli(1_000_000)
	server := func() Server {
		now = now.Add(time.Millisecond)
		return Server{Wall: now, Identity: "x", Uptime: time.Hour, Subscribers: func(string) int { return 0 }}
	}
	a := Request{Key: KeyOf("f", "g"), Instance: "a", Number: 1, Limit: 2, Lease: 2 * time.Second, Arrived: []Run{{First: 1, Calls: 2, Cost: 1}}}
	ra, _ := l.Exchange(server(), &a)
	if ra.Granted-ra.Returned != 2 || ra.Queued != 0 {
		t.Fatalf("a got %v", ra)
	}
	b := a
	b.Instance = "b"
	rb, told := l.Exchange(server(), &b)
	if rb.Granted != rb.Returned || rb.Queued != 2 || len(told) != 2 || told[1].Text != "c" {
		t.Fatalf("b got %v and %v was told", rb, told)
	}
	a = Request{Key: a.Key, Instance: "a", Number: 2, Limit: 2, Lease: a.Lease, Epoch: ra.Epoch, Granted: ra.Granted, Returned: ra.Returned + 1}
	ra, told = l.Exchange(server(), &a)
	if ra.Held != 2 || len(told) != 1 {
		t.Fatalf("a got %v and %v was told", ra, told)
	}
	if n, err := ParseNews(told[0].Text); err != nil || n.Kind != 'g' || n.Granted != rb.Granted+1 {
		t.Errorf("b hears %q: %v, %v", told[0].Text, n, err)
	}
	if st, err := ParseState(l.Fields()); err != nil || len(st.Members) != 2 || st.Held != 2 {
		t.Errorf("the state is %v, %v", st, err)
	}
}

// TestRepeatedRequest: a request that is executed twice is told of no share that the
// ledger does not count.
func TestRepeatedRequest(t *testing.T) {
	var l Ledger
	server := Server{Wall: time.UnixMilli(1_000_000), Identity: "x", Uptime: time.Hour, Subscribers: func(string) int { return 0 }}
	a := Request{Key: KeyOf("f", "g"), Instance: "a", Number: 1, Limit: 4, Lease: 2 * time.Second, Withhold: time.Minute, Contact: -1}
	b := a
	b.Instance = "b"
	l.Exchange(server, &a)
	l.Exchange(server, &b)
	a.Number, a.Share = 2, 2
	if r, _ := l.Exchange(server, &a); r.Share != 2 {
		t.Errorf("a is told %d", r.Share)
	}
	b.Number, b.Leaving = 2, true
	l.Exchange(server, &b)
	if r, _ := l.Exchange(server, &a); r.Share != 2 {
		t.Errorf("a is told %d, and the ledger keeps 2", r.Share)
	}
}
