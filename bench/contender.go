package main

import (
	"context"
	"strconv"
	"sync/atomic"
	"time"

	"example.com/forebay/bench/rivals"
)

// contender is one way to keep a limit over many instances.
type contender struct {
	name string
	kind kind
	// commands are what its clients send, by the names of INFO commandstats; scripts
	// of it call none of them.
	commands []string
	open     func(setup) (*field, error)
}

// setup is what a contender is to limit.
type setup struct {
	key       string
	instances int
	callers   int // of each instance
	limit     int
}

// field is a contender at work, with its instances.
type field struct {
	acquire []func(context.Context) (release func(), err error) // of each
	close   func()
	failed  atomic.Pointer[error] // the first caller who was refused
}

var keys atomic.Int64

// nextKey returns a name that nobody has used on the server.
func nextKey() string { return "bench" + strconv.FormatInt(keys.Add(1), 10) }

// start opens it on a key that nobody has used.
func (c *contender) start(instances, callers, limit int) *field {
	f, err := c.open(setup{nextKey(), instances, callers, limit})
	if err != nil {
		panic(unfit(c.name + ": " + err.Error()))
	}
	return f
}

// use has a slot of an instance for the length of one piece of work. Nobody is to be
// refused in these sections: see [field.check].
func (f *field) use(instance int, work func()) {
	release, err := f.acquire[instance](context.Background())
	if err != nil {
		f.failed.CompareAndSwap(nil, &err)
		time.Sleep(time.Millisecond)
		return
	}
	work()
	release()
}

// check ends the run if somebody was refused.
func (f *field) check(c *contender) {
	if err := f.failed.Load(); err != nil {
		panic(unfit(c.name + ": " + (*err).Error()))
	}
}

// sentBy are the commands that the clients of a kind of rival send.
var sentBy = map[string][]string{
	rivals.TokenList: {"exists", "blpop", "lpush"},
	rivals.LeaseSet:  {"evalsha", "zrem"},
	rivals.Counter:   {"evalsha", "decr"},
	rivals.Redsync:   {"set", "evalsha"},
}

// contenders returns those of ours, and every rival.
func contenders(own ...*contender) []*contender {
	all := own
	for _, r := range rivals.All() {
		all = append(all, &contender{
			name: r.Name, kind: rival, commands: sentBy[r.Kind],
			open: func(s setup) (*field, error) { return openRival(r, s) },
		})
	}
	return all
}

func openRival(r rivals.Rival, s setup) (*field, error) {
	f := &field{}
	var opened []rivals.Semaphore
	f.close = func() {
		for _, o := range opened {
			_ = o.Close()
		}
	}
	for range s.instances {
		o, err := r.Open(rivals.Config{Addr: lab().Addr(), Name: s.key, Limit: s.limit, Callers: s.callers, MaxWait: longPatience})
		if err != nil {
			f.close()
			return nil, err
		}
		opened = append(opened, o)
		f.acquire = append(f.acquire, o.Acquire)
	}
	// The token list is made by whoever comes first, and twice if two do.
	f.use(0, func() {})
	return f, nil
}

// row is the contender in a table.
func (c *contender) row(against string, measure func() figures) row {
	r := row{name: c.name, kind: c.kind, measure: measure}
	if c.kind == rival {
		r.against = against
	}
	return r
}
