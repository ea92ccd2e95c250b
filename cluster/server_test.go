package cluster_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"example.com/forebay/cluster"
	"example.com/forebay/forebaytest/redistest"
)

// instance speaks to the script on a server as that is, with nothing feigned.
type plainInstance struct {
	t        *testing.T
	on       *onRedis
	wire     *wire
	r        cluster.Request
	identity string
}

func newPlain(t *testing.T, server *redistest.Server, name string, lease time.Duration) *plainInstance {
	key := cluster.KeyOf("t", "g")
	on := newOnRedis(t, server, key)
	return &plainInstance{t: t, on: on, wire: on.talk, r: cluster.Request{
		Key: key, Instance: name, Limit: 3, Lease: lease, Arrived: []cluster.Run{{First: 1, Calls: 1, Cost: 1}},
	}}
}

// try makes one request, and returns what the server said.
func (p *plainInstance) try() any {
	p.r.Number++
	p.wire.send(append([]string{"EVALSHA", p.on.sha, "1", p.r.Key}, p.r.Args(p.identity)...)...)
	return p.wire.read()
}

func (p *plainInstance) speak() cluster.Reply {
	p.t.Helper()
	answer := p.try()
	text, ok := answer.(string)
	if !ok {
		p.t.Fatal(answer)
	}
	reply, err := cluster.ParseReply(text)
	if err != nil {
		p.t.Fatal(err)
	}
	p.r.Epoch, p.r.Granted, p.r.Returned = reply.Epoch, reply.Granted, reply.Returned
	p.r.Claim = int(reply.Granted - reply.Returned)
	return reply
}

// old waits until a server says that it is up for a second.
func old(t *testing.T, server *redistest.Server) *redistest.Server {
	for server.Info("server")["uptime_in_seconds"] == "0" {
		if t.Context().Err() != nil {
			t.Fatal(t.Context().Err())
		}
	}
	return server
}

const (
	short = 500 * time.Millisecond // a second is more than 1.6 of it
	long  = time.Minute
)

func TestColdStartOfAnOldServer(t *testing.T) {
	server := old(t, redistest.Start(t, redistest.Config{}))
	a := newPlain(t, server, "a", short)
	if reply := a.speak(); reply.Learning != 0 || reply.Granted != 1 {
		t.Errorf("the first to come is answered %+v", reply)
	}
	// Another epoch, to which somebody else is subscribed.
	a.wire.do("DEL", a.r.Key)
	b, c := newPlain(t, server, "b", short), newPlain(t, server, "c", short)
	b.on.ear.do("SUBSCRIBE", b.r.Key)
	b.on.ear.do("SUBSCRIBE", cluster.ChannelOf(b.r.Key, "b"))
	if reply := c.speak(); reply.Learning == 0 || reply.Granted != 0 {
		t.Errorf("with a stranger subscribed c is answered %+v", reply)
	}
	if reply := b.speak(); reply.Learning != 0 || reply.Granted != 1 {
		t.Errorf("once it has spoken it is answered %+v", reply)
	}
}

func TestColdStartOfAYoungServer(t *testing.T) {
	server := redistest.Start(t, redistest.Config{})
	if reply := newPlain(t, server, "a", long).speak(); reply.Learning == 0 || reply.Learning > long*8/5 {
		t.Errorf("a server that has just started answers %+v", reply)
	}
}

// TestColdStartOfAPromotedReplica: it may not have heard of what was lent before.
func TestColdStartOfAPromotedReplica(t *testing.T) {
	primary, replica := redistest.Start(t, redistest.Config{}), redistest.Start(t, redistest.Config{})
	replica.Must("REPLICAOF", "127.0.0.1", strings.TrimPrefix(primary.Addr(), "127.0.0.1:"))
	for replica.Info("replication")["master_link_status"] != "up" {
		if t.Context().Err() != nil {
			t.Fatal(t.Context().Err())
		}
	}
	replica.Must("REPLICAOF", "NO", "ONE")
	if reply := newPlain(t, old(t, replica), "a", short).speak(); reply.Learning != short*8/5 {
		t.Errorf("it answers %+v", reply)
	}
}

// TestOtherServerSameData: a copy of the data on another server is not believed.
func TestOtherServerSameData(t *testing.T) {
	one, other := old(t, redistest.Start(t, redistest.Config{})), redistest.Start(t, redistest.Config{})
	a := newPlain(t, one, "a", short)
	before := a.speak()
	dump := a.wire.do("DUMP", a.r.Key).(string)
	b := newPlain(t, other, "b", short)
	b.wire.do("RESTORE", b.r.Key, "0", dump)
	if reply := b.speak(); reply.Epoch <= before.Epoch || reply.Learning != short*8/5 || reply.Held != 0 {
		t.Errorf("a copy answers %+v, the original said %+v", reply, before)
	}
}

// TestWithoutInfo: the store says who the server is; who does not know learns at length.
func TestWithoutInfo(t *testing.T) {
	server := old(t, redistest.Start(t, redistest.Config{}))
	a := newPlain(t, server, "a", short)
	server.AddUser("few", "secret", "~t:*", "&t:*", "+@all", "-info")
	a.wire.do("AUTH", "few", "secret")
	a.identity = "one"
	first := a.speak()
	if first.Learning != short*8/5 {
		t.Errorf("a server that says nothing of itself answers %+v", first)
	}
	if again := a.speak(); again.Epoch != first.Epoch {
		t.Errorf("epoch %d follows %d", again.Epoch, first.Epoch)
	}
	a.identity = "two"
	if again := a.speak(); again.Epoch <= first.Epoch {
		t.Errorf("another server goes on with epoch %d", again.Epoch)
	}
	a.identity = ""
	second := a.r.Epoch
	if again := a.speak(); again.Epoch != second {
		t.Errorf("a store that does not know begins epoch %d", again.Epoch)
	}
}

// TestManyInstances: more of them than a script may name in one command.
func TestManyInstances(t *testing.T) {
	const many = 8100
	server := old(t, redistest.Start(t, redistest.Config{}))
	a := newPlain(t, server, "a", short)
	l := &cluster.Ledger{}
	model := cluster.Server{Wall: time.Now(), Identity: server.Info("server")["run_id"], Uptime: time.Hour}
	for i := range many {
		r := a.r
		r.Instance, r.Number, r.Arrived = "i"+strconv.Itoa(i), 1, nil
		l.Exchange(model, &r)
	}
	kept := []string{"HSET", a.r.Key}
	for field, value := range l.Fields() {
		kept = append(kept, field, value)
	}
	a.wire.do(kept...)
	if reply := a.speak(); reply.Learning != 0 || reply.Granted != 1 || reply.Instances != many+1 {
		t.Errorf("once nobody else is subscribed, it is answered %+v", reply)
	}
	a.r.Limit = 2 // for which everybody is looked at
	if reply := a.speak(); reply.Limit != 2 || reply.Instances != many+1 {
		t.Errorf("configured otherwise, it is answered %+v", reply)
	}
}

// TestDamage: what cannot be read in the middle of a step fails it, and is lost.
func TestDamage(t *testing.T) {
	server := old(t, redistest.Start(t, redistest.Config{}))
	for _, damage := range [][]string{
		{"HSET", "ib", "garbage"},
		{"HDEL", "ib"},
		{"HSET", "n", "a"},
		{"HDEL", "n"},
		{"HSET", "t1", "\xc1"},
	} {
		t.Run(strings.Join(damage, "_"), func(t *testing.T) {
			a, b, c := newPlain(t, server, "a", short), newPlain(t, server, "b", short), newPlain(t, server, "c", short)
			a.wire.do("DEL", a.r.Key)
			a.r.Arrived[0].Calls = 3
			a.speak()
			b.speak()
			before := a.r.Epoch
			a.wire.do(append([]string{damage[0], a.r.Key}, damage[1:]...)...)
			c.r.Arrived = nil
			a.r.Returned, a.r.Arrived = a.r.Returned+1, nil
			failed := false
			for _, p := range []*plainInstance{c, a, b} {
				if err, is := p.try().(error); is {
					failed = true
					if !strings.Contains(err.Error(), "damaged") {
						t.Errorf("it fails with %v", err)
					}
				}
			}
			if !failed {
				t.Error("nothing fails")
			}
			if reply := a.speak(); reply.Epoch <= before || reply.Learning == 0 {
				t.Errorf("afterwards it answers %+v", reply)
			}
		})
	}
}
