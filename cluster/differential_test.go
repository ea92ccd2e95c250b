package cluster_test

import (
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"example.com/forebay/cluster"
	"example.com/forebay/forebaytest/redistest"
)

var steps = flag.Int("steps", 3000, "steps of random histories")
var seed = flag.Uint64("seed", 1, "of random histories")

// TestScriptIsTheModel runs random histories on the model and on Redis: replies,
// messages and what is kept are the same after every step.
func TestScriptIsTheModel(t *testing.T) {
	server := redistest.Start(t, redistest.Config{})
	for n := 0; n < *steps; {
		n += rude(t, rand.New(rand.NewPCG(*seed, uint64(n))), server, 300)
		if t.Failed() {
			return
		}
	}
}

// rude is one history of requests that need not make sense.
func rude(t *testing.T, rnd *rand.Rand, server *redistest.Server, length int) int {
	key := cluster.KeyOf("t", "g")
	m, r := &model{}, newOnRedis(t, server, key)
	r.wipe()
	f := facts{wall: 1_700_000_000 * time.Second, identity: "id0", uptime: time.Hour}
	numbers := map[string]uint64{}
	calls := map[string]uint64{}
	last := map[string]cluster.Reply{}
	fenced := rnd.IntN(3) == 0
	limit := 1 + rnd.IntN(8)
	n := 1 + rnd.IntN(5)
	lease := time.Duration(1+rnd.IntN(3000)) * time.Millisecond
	dearest := 1 + rnd.IntN(4)*rnd.IntN(2)
	for i := range length {
		switch rnd.IntN(120) {
		case 0:
			f.identity = string(rune('a' + rnd.IntN(3)))
			if rnd.IntN(4) == 0 {
				f.identity = ""
			}
		case 1:
			f.wall += time.Duration(rnd.IntN(7200)-3600) * time.Second
		case 2:
			f.uptime = time.Duration(rnd.IntN(5)-1) * time.Second
		case 3:
			f.subscribed, f.blind = nil, rnd.IntN(3) == 0
			for j := range n + 1 {
				if rnd.IntN(2) == 0 {
					f.subscribed = append(f.subscribed, string(rune('A'+j)))
				}
			}
		case 4:
			m.wipe()
			r.wipe()
		case 5:
			if len(m.fields()) > 0 {
				m.spoil(0)
				r.spoil(rnd.IntN(6))
			}
		case 6:
			limit = rnd.IntN(8)
		}
		f.wall += time.Duration(rnd.IntN(1+rnd.IntN(1+rnd.IntN(4000)))) * time.Millisecond
		id := string(rune('A' + rnd.IntN(n)))
		heard := last[id]
		q := &cluster.Request{
			Key: key, Instance: id, Host: "host " + id, Lease: lease, Limit: limit, Fenced: fenced,
			Epoch: heard.Epoch, Granted: heard.Granted, Returned: heard.Returned, Slots: slices.Clone(heard.Slots),
			Clock:   heard.Clock + time.Duration(rnd.IntN(2000))*time.Millisecond,
			Waiting: rnd.IntN(3), InUse: rnd.IntN(3), Oldest: time.Duration(rnd.IntN(1e9)),
			MinShare: rnd.IntN(2),
		}
		numbers[id]++
		q.Number = numbers[id]
		if rnd.IntN(10) == 0 {
			q.Number = uint64(rnd.IntN(int(q.Number) + 1))
		}
		held := int(q.Granted - q.Returned)
		q.Claim = rnd.IntN(held + 1)
		if held > 0 && rnd.IntN(2) == 0 {
			k := 1 + rnd.IntN(held)
			q.Returned += uint64(k)
			rnd.Shuffle(len(q.Slots), func(i, j int) { q.Slots[i], q.Slots[j] = q.Slots[j], q.Slots[i] })
			q.Slots = q.Slots[:len(q.Slots)-min(k, len(q.Slots))]
		}
		if rnd.IntN(40) == 0 {
			q.Granted, q.Returned = q.Granted+uint64(rnd.IntN(3)), uint64(rnd.IntN(10))
		}
		if rnd.IntN(40) == 0 {
			q.Limit = rnd.IntN(10)
		}
		if rnd.IntN(30) == 0 {
			q.Override = cluster.Override{Version: uint64(rnd.IntN(6)), Limit: rnd.IntN(8) - 1, For: time.Duration(rnd.IntN(2)*rnd.IntN(9000)) * time.Millisecond}
		}
		if rnd.IntN(3) == 0 {
			q.Spare = rnd.IntN(5)
		}
		if rnd.IntN(8) == 0 {
			q.Withhold = lease * 3
		}
		if rnd.IntN(40) == 0 {
			q.Leaving = true
		}
		stand := calls[id]
		for from := stand - min(stand, uint64(rnd.IntN(12))) + 1; from <= stand; {
			to := min(stand, from+uint64(rnd.IntN(4)))
			q.Standing = append(q.Standing, cluster.Span{First: from, Last: to})
			from = to + 1 + uint64(rnd.IntN(3))
		}
		for range rnd.IntN(4) {
			run := cluster.Run{First: stand + 1, Calls: 1 + rnd.IntN(3), Cost: 1 + rnd.IntN(dearest), Ask: rnd.IntN(4) == 0}
			q.Arrived = append(q.Arrived, run)
			stand += uint64(run.Calls)
		}
		a, am := m.exchange(f, q)
		b, bm := r.exchange(f, q)
		mf, rf := m.fields(), r.fields()
		if !reflect.DeepEqual(a, b) || !slices.Equal(am, bm) || !maps.Equal(mf, rf) {
			t.Errorf("step %d, request %+v, facts %v\nmodel %+v\nredis %+v\nmodel %v\nredis %v\n%s", i, *q, f, a, b, am, bm, difference(mf, rf))
			return i
		}
		if rnd.IntN(6) > 0 {
			last[id] = a
			calls[id] = stand
		}
	}
	return length
}

// difference returns what is kept differently, a line each.
func difference(a, b map[string]string) string {
	var s strings.Builder
	all := maps.Clone(a)
	maps.Copy(all, b)
	for _, k := range slices.Sorted(maps.Keys(all)) {
		if a[k] != b[k] {
			fmt.Fprintf(&s, "%s\n  model %s\n  redis %s\n", k, shown(k, a[k]), shown(k, b[k]))
		}
	}
	return s.String()
}

// shown returns a field as a person can read it.
func shown(field, value string) string {
	if value == "" || strings.Contains("nuh", field[:1]) {
		return value
	}
	return fmt.Sprint(unpacked(value))
}

// unpacked reads packed values without knowing what they are.
func unpacked(s string) (values []any) {
	for s != "" {
		v, rest := value(s)
		values, s = append(values, v), rest
	}
	return values
}

func value(s string) (any, string) {
	number := func(n int) (v int64, rest string) {
		for _, b := range []byte(s[1 : 1+n]) {
			v = v<<8 | int64(b)
		}
		return v, s[1+n:]
	}
	list := func(n int64, rest string) (any, string) {
		all := make([]any, n)
		for i := range all {
			all[i], rest = value(rest)
		}
		return all, rest
	}
	switch kind := s[0]; {
	case kind < 1<<7 || kind >= 0xe0:
		return int8(kind), s[1:]
	case kind&0xe0 == 0xa0:
		return s[1 : 1+kind&0x1f], s[1+kind&0x1f:]
	case kind&0xf0 == 0x90:
		return list(int64(kind&0x0f), s[1:])
	case kind == 0xdc:
		return list(number(2))
	case kind >= 0xcc && kind <= 0xcf:
		v, rest := number(1 << (kind - 0xcc))
		return v, rest
	case kind >= 0xd0 && kind <= 0xd3:
		v, rest := number(1 << (kind - 0xd0))
		return -v, rest
	case kind == 0xd9:
		n, rest := number(1)
		return rest[:n], rest[n:]
	}
	return fmt.Sprintf("%q", s), ""
}
