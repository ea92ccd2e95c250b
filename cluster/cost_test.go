package cluster_test

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"testing"
	"time"

	"example.com/forebay/cluster"
	"example.com/forebay/forebaytest/redistest"
)

// BenchmarkExchange says what one exchange costs Redis (us/exchange, of its own
// processor time), by what it carries.
func BenchmarkExchange(b *testing.B) {
	server := redistest.Start(b, redistest.Config{})
	for _, c := range []struct {
		name string
		run  func(*traffic)
	}{
		{"heartbeat", func(l *traffic) { l.heartbeats(5) }},
		{"nothing", (*traffic).baseline},
		{"batch30", (*traffic).batches},
		{"contended5", (*traffic).contended},
		{"queued1000", func(l *traffic) { l.queue(1000); l.contended() }},
		{"queued1000heartbeat", func(l *traffic) { l.queue(1000); l.heartbeats(5) }},
		{"fenced30", func(l *traffic) { l.fenced = true; l.batches() }},
	} {
		b.Run(c.name, func(b *testing.B) {
			l := newTraffic(b, server)
			c.run(l)
		})
	}
}

// traffic is instances that exchange with a real server, by its own clock.
type traffic struct {
	b      *testing.B
	side   *onRedis
	reply  map[string]cluster.Reply
	number uint64
	call   map[string]uint64
	next   map[string]uint64 // the first call that still stands
	limit  int
	fenced bool
}

func newTraffic(b *testing.B, server *redistest.Server) *traffic {
	l := &traffic{b: b, limit: 20, reply: map[string]cluster.Reply{}, call: map[string]uint64{}, next: map[string]uint64{}}
	l.side = &onRedis{t: b, key: cluster.KeyOf("bench", b.Name()), talk: dial(b, server.Addr())}
	source, sha := cluster.Script()
	l.side.talk.do("SCRIPT", "LOAD", source)
	l.side.talk.do("DEL", l.side.key)
	l.side.sha = sha
	return l
}

// speak sends one request: it gives back give units, and brings arrived calls.
func (l *traffic) speak(name string, give, arrived, cost int) cluster.Reply {
	last := l.reply[name]
	l.number++
	r := &cluster.Request{
		Key: l.side.key, Instance: name, Host: "web-" + name, Number: l.number, Limit: l.limit, Lease: 2 * time.Second,
		Epoch: last.Epoch, Granted: last.Granted, Returned: last.Returned + uint64(give),
		InUse: int(last.Granted - last.Returned), Waiting: last.Queued + arrived, Fenced: l.fenced,
	}
	if l.fenced && give <= len(last.Slots) {
		r.Slots = last.Slots[give:]
	}
	if n := l.call[name]; n >= l.next[name] && n > 0 {
		r.Standing = []cluster.Span{{First: l.next[name], Last: n}}
	}
	if arrived > 0 {
		r.Arrived = []cluster.Run{{First: l.call[name] + 1, Calls: arrived, Cost: cost}}
		l.call[name] += uint64(arrived)
	}
	l.side.talk.send(append([]string{"EVALSHA", l.side.sha, "1", l.side.key}, r.Args("")...)...)
	answer, ok := l.side.talk.read().(string)
	if !ok {
		l.b.Fatal("the script fails")
	}
	reply, err := cluster.ParseReply(answer)
	if err != nil {
		l.b.Fatal(err)
	}
	l.next[name] = l.call[name] - uint64(reply.Queued) + 1
	l.reply[name] = reply
	return reply
}

// measure runs b.N exchanges, in rounds, and reports what they cost Redis: in the round
// in the middle, and in the best one, which is what is left where others use the machine.
func (l *traffic) measure(exchange func(i int)) {
	const round = 100
	var rounds []float64
	l.b.ResetTimer()
	for i := 0; i < l.b.N+round; i++ {
		exchange(i)
		if i%round != round-1 {
			continue
		}
		l.b.StopTimer()
		if calls, us := l.spent(); i > round {
			rounds = append(rounds, us/calls)
		}
		l.b.StartTimer()
	}
	l.b.StopTimer()
	if slices.Sort(rounds); len(rounds) > 0 {
		l.b.ReportMetric(rounds[len(rounds)/2], "us/exchange")
		l.b.ReportMetric(rounds[0], "us/best")
	}
}

// spent returns what the script cost since it was last asked.
func (l *traffic) spent() (calls, us float64) {
	stats := l.side.talk.do("INFO", "commandstats").(string)
	l.side.talk.do("CONFIG", "RESETSTAT")
	m := regexp.MustCompile(`cmdstat_evalsha:calls=(\d+),usec=(\d+)`).FindStringSubmatch(stats)
	if m == nil {
		l.b.Fatal("no script was run")
	}
	calls, _ = strconv.ParseFloat(m[1], 64)
	us, _ = strconv.ParseFloat(m[2], 64)
	return calls, us
}

// baseline is a script that only asks the server who it is, for comparison.
func (l *traffic) baseline() {
	l.side.sha = l.side.talk.do("SCRIPT", "LOAD", "return redis.call('INFO', 'server')").(string)
	l.measure(func(int) { l.side.talk.do("EVALSHA", l.side.sha, "1", l.side.key) })
}

func (l *traffic) heartbeats(n int) {
	l.measure(func(i int) { l.speak(fmt.Sprintf("instance-%02d", i%n), 0, 0, 1) })
}

// batches are of an instance that has the limit to itself: it gives back what it was
// lent and brings as many calls again.
func (l *traffic) batches() {
	l.limit = 100
	l.measure(func(int) {
		held := int(l.reply["a"].Granted - l.reply["a"].Returned)
		l.speak("a", held, 30, 1)
	})
}

// contended is five instances that want more than there is: each gives back two units
// as it speaks, and brings two calls.
func (l *traffic) contended() {
	l.measure(func(i int) {
		name := fmt.Sprintf("instance-%02d", i%5)
		held := int(l.reply[name].Granted - l.reply[name].Returned)
		l.speak(name, min(2, held), 2, 1)
	})
}

// queue makes a line of n calls that arrived one by one at five instances in turn.
func (l *traffic) queue(n int) {
	l.speak("holder", 0, 20, 1)
	for i := range n {
		l.speak(fmt.Sprintf("instance-%02d", i%5), 0, 1, 1)
	}
}
