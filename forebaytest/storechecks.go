package forebaytest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"example.com/forebay/cluster"
)

var storeChecks = []storeCheck{
	{"an exchange is one step of the ledger", storeStep},
	{"the same request twice is one", storeTwice},
	{"a grant reaches the instance that waits, and no other", storeGrant},
	{"what is published on a channel comes in order", storeOrder},
	{"exchanges at the same time are steps one after the other", storeTogether},
	{"gates do not touch each other, whatever they are called", storeNames},
	{"a request may be long", storeLong},
	{"a fenced gate lends numbered slots", storeFenced},
	{"Stats shows the ledger and changes nothing", storeStats},
	{"whoever leaves is gone", storeLeave},
	{"an exchange ends with its context", storeExchangeEnds},
	{"a subscription ends with its context", storeSubscriptionEnds},
	{"two subscriptions hear the same", storeTwoHear},
}

func storeStep(r *storeRig) {
	a, b := r.teller("g", "a", 3), r.teller("g", "b", 3)
	a.settle()
	a.want(2)
	if got := a.tell(); a.held() != 2 || got.Held != 2 || got.Limit != 3 || got.Heard != 2 || got.Epoch == 0 {
		r.Errorf("two calls of three: %v", got)
	}
	a.stand(0)
	b.want(2)
	if got := b.tell(); b.held() != 1 || got.Held != 3 || got.Queued != 1 || got.Instances != 2 || got.Epoch != a.last.Epoch {
		r.Errorf("two calls with one unit free: %v", got)
	}
	a.giveBack(1)
	if got := a.tell(); a.held() != 1 || got.Held != 3 {
		r.Errorf("one given back: %v, it holds %d", got, a.held())
	}
	b.stand(0)
	if b.tell(); b.held() != 2 {
		r.Errorf("after one was given back the other holds %d, want 2: %v", b.held(), b.last)
	}
}

func storeTwice(r *storeRig) {
	a := r.teller("g", "a", 5)
	a.settle()
	a.want(2)
	again := a.next
	again.Number++
	first := a.tell()
	second, err := r.Exchange(r.Context(), &again)
	if err != nil {
		r.Fatalf("Exchange: %v", err)
	}
	if second.Granted != first.Granted || second.Held != first.Held || second.Heard != first.Heard {
		r.Errorf("the same again: %v, want what it was: %v", second, first)
	}
}

func storeGrant(r *storeRig) {
	a, b := r.teller("g", "a", 1), r.teller("g", "b", 1)
	a.settle()
	a.want(1)
	a.tell()
	a.stand(0)
	b.want(1)
	b.tell()
	forA := r.subscribe(a.next.Key, cluster.ChannelOf(a.next.Key, "a"))
	forB := r.subscribe(b.next.Key, cluster.ChannelOf(b.next.Key, "b"))
	a.giveBack(1)
	a.tell()
	m := forB.hear(kind('g'))
	news, _ := cluster.ParseNews(m.Text)
	if m.Channel != cluster.ChannelOf(b.next.Key, "b") || news.Epoch != b.last.Epoch || news.Granted != b.last.Granted+1 {
		r.Errorf("b heard %q on %q, want %d units of epoch %d", m.Text, m.Channel, b.last.Granted+1, b.last.Epoch)
	}
	a.next.Override = cluster.Override{Version: 1, Limit: 7} // everybody hears of it, after all that came before
	a.tell()
	forA.hear(func(m cluster.Message) bool {
		if kind('g')(m) {
			r.Errorf("a heard %q on %q, which is b's", m.Text, m.Channel)
		}
		return kind('l')(m)
	})
	_ = forB.end()
	_ = forA.end()
}

func storeOrder(r *storeRig) {
	const n = 200
	a := r.teller("g", "a", 1)
	a.settle()
	s := r.subscribe(a.next.Key)
	for i := range n {
		a.next.Override = cluster.Override{Version: uint64(i + 1), Limit: i + 10}
		a.tell()
	}
	for i := range n {
		m := s.hear(kind('l'))
		if news, _ := cluster.ParseNews(m.Text); m.Channel != a.next.Key || news.Count != i+10 {
			r.Fatalf("message %d is %q on %q, want the limit %d", i, m.Text, m.Channel, i+10)
		}
	}
}

func storeTogether(r *storeRig) {
	const gates, instances, times = 4, 4, 25
	for g := range gates {
		r.teller(fmt.Sprint("g", g), "first", 1000).settle()
	}
	var wg sync.WaitGroup
	for g := range gates {
		for i := range instances {
			wg.Go(func() {
				m := r.teller(fmt.Sprint("g", g), fmt.Sprintf("g%di%d", g, i), 1000)
				for range times {
					m.want(2)
					if err := m.try(r.Context()); err != nil {
						r.Errorf("Exchange: %v", err)
						return
					}
					m.stand(0)
					m.giveBack(1)
				}
				if err := m.try(r.Context()); err != nil || m.held() != times {
					r.Errorf("%s of %s holds %d at the end, want %d (%v)", m.next.Instance, m.next.Key, m.held(), times, err)
				}
			})
		}
	}
	wg.Wait()
	for g := range gates {
		if got := r.teller(fmt.Sprint("g", g), "last", 1000).tell(); got.Held != instances*times {
			r.Errorf("gate %d lent %d units in all, want %d", g, got.Held, instances*times)
		}
	}
}

func storeNames(r *storeRig) {
	names := []string{"g", "{g}", "a{b}c", "}{", "g:a", "%7B", "with space", "Überlauf", "new\nline", "\x00\xff", strings.Repeat("long", 100)}
	for i, name := range names {
		m := r.teller(name, "a", 100)
		m.settle()
		m.want(i + 1)
		m.tell()
	}
	for i, name := range names {
		m := r.teller(name, "b", 100)
		if got := m.tell(); got.Held != i+1 || got.Instances != 2 {
			r.Errorf("gate %q: %d units at %d instances, want %d at 2", name, got.Held, got.Instances, i+1)
		}
	}
}

func storeLong(r *storeRig) {
	const n = 3000
	a := r.teller("g", "a", n)
	a.settle()
	for i := range n {
		a.next.Arrived = append(a.next.Arrived, cluster.Run{First: uint64(i + 1), Calls: 1, Cost: 1 + i%2})
	}
	a.next.Waiting = n
	if got := a.tell(); got.Held != n || got.Heard != n || got.Queued != n-n*2/3 {
		r.Errorf("%d units, heard of %d calls, %d in line; want %d, %d, %d", got.Held, got.Heard, got.Queued, n, n, n-n*2/3)
	}
}

func storeFenced(r *storeRig) {
	a := r.teller("g", "a", 3)
	a.next.Fenced = true
	a.settle()
	a.want(2)
	got := a.tell()
	if len(got.Slots) != 2 || got.Slots[0].Number == got.Slots[1].Number || got.Slots[0].Fence == 0 || got.Slots[0].Fence == got.Slots[1].Fence {
		r.Errorf("two calls got the slots %v", got.Slots)
	}
}

func storeStats(r *storeRig) {
	a := r.teller("g", "a", 3)
	if got, err := r.Stats(r.Context(), a.next.Key); err != nil || got.Epoch != 0 || len(got.Members) != 0 {
		r.Errorf("Stats of nothing: %+v, %v; want the zero value", got, err)
	}
	a.settle()
	a.want(2)
	a.next.InUse = 1
	a.tell()
	a.stand(0)
	first, err := r.Stats(r.Context(), a.next.Key)
	if err != nil {
		r.Fatalf("Stats: %v", err)
	}
	if first.Epoch != a.last.Epoch || first.Limit != 3 || first.Held != 2 || len(first.Members) != 1 {
		r.Fatalf("Stats: %+v, want 2 of 3 held by one", first)
	}
	m := first.Members[0]
	if m.ID != "a" || m.Host != a.next.Host || m.Held != 2 || m.InUse != 1 || m.Limit != 3 || m.Lease <= 0 || m.Lease > storeLease {
		r.Errorf("Stats: the member is %+v", m)
	}
	if got := a.tell(); got.Held != 2 || got.Epoch != first.Epoch {
		r.Errorf("after Stats: %v, want 2 units in epoch %d as before", got, first.Epoch)
	}
}

func storeLeave(r *storeRig) {
	a, b := r.teller("g", "a", 3), r.teller("g", "b", 3)
	a.settle()
	a.want(3)
	a.tell()
	b.tell()
	s := r.subscribe(b.next.Key)
	a.next.Leaving = true
	a.giveBack(3)
	a.tell()
	if news, _ := cluster.ParseNews(s.hear(kind('n')).Text); news.Count != 1 {
		r.Errorf("told of %d instances, want 1", news.Count)
	}
	if got := b.tell(); got.Held != 0 || got.Instances != 1 {
		r.Errorf("after one left: %v, want nothing held, and one instance", got)
	}
}

func storeExchangeEnds(r *storeRig) {
	a := r.teller("g", "a", 3)
	a.settle()
	over, stop := context.WithCancel(r.Context())
	stop()
	a.want(1)
	if err := a.try(over); !errors.Is(err, context.Canceled) || errors.Is(err, cluster.ErrSetup) {
		r.Errorf("with a context that is over: %v, want its error", err)
	}
	late, stop := context.WithTimeout(r.Context(), time.Nanosecond)
	defer stop()
	if err := a.try(late); !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, cluster.ErrSetup) {
		r.Errorf("with a deadline that is over: %v, want its error", err)
	}
	if got := a.tell(); got.Heard > 1 {
		r.Errorf("afterwards: %v", got)
	}
}

func storeSubscriptionEnds(r *storeRig) {
	a := r.teller("g", "a", 1)
	a.settle()
	s := r.subscribe(a.next.Key)
	if err := s.end(); !errors.Is(err, context.Canceled) && !errors.Is(err, errOver) {
		r.Errorf("Subscribe returned %v, want its context's error", err)
	}
	a.next.Override = cluster.Override{Version: 1, Limit: 7}
	a.tell()
	other := r.subscribe(a.next.Key)
	a.next.Override.Version++
	a.next.Override.Limit++
	a.tell()
	other.hear(kind('l'))
	select { // one that goes on may hear it a little after the other
	case m := <-s.heard:
		r.Errorf("it heard %v after its end", m)
	case <-time.After(graceAfterEnd):
	}
}

// graceAfterEnd is how long a subscription that has ended is given to show that it goes
// on: what is not heard by then is taken as never.
const graceAfterEnd = 100 * time.Millisecond

func storeTwoHear(r *storeRig) {
	a := r.teller("g", "a", 1)
	a.settle()
	first, second := r.subscribe(a.next.Key, cluster.ChannelOf(a.next.Key, "other")), r.subscribe(a.next.Key)
	a.next.Override = cluster.Override{Version: 1, Limit: 7}
	a.tell()
	if x, y := first.hear(kind('l')), second.hear(kind('l')); x != y {
		r.Errorf("one heard %v, the other %v", x, y)
	}
}
