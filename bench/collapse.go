package main

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

var collapseLoads = []float64{1, 5, 10}

const nameUnlimited = "nginx without a limit"

// collapseSection is the goodput section with real proxies.
func collapseSection(e effort) (*section, error) {
	s := &section{
		name: "goodput", title: "Goodput of an upstream that collapses", rounds: e.collapseRounds,
		about: "An upstream with 20 slots and 50 ms of work. Requests over the 20 wait inside it and slow everybody down, by 50 % for each 20; work goes on when its caller has left. Callers come in an open loop (Poisson, the same moments for every proxy, one proxy after the other, each before an upstream of its own) and leave after 500 ms. Goodput is answers in time over what the upstream can do, which is measured at the same time on one more with exactly 20 at work, without callers or a proxy.",
		columns: []column{
			{name: goodput, more: true, noise: 0.005}, {name: refusedIn, noise: 0.1}, {name: answerIn, neutral: true}, {name: mostSeen, neutral: true},
		},
		notes: []string{
			"At 1 x no gate can do better than some 0.99: while fewer come than leave, slots stay empty. nginx has no line in which a request could wait for 100 ms; HAProxy's has no bound, so that who is refused has waited in vain; Caddy's is no line: who waits asks again, and whoever comes at the right moment runs.",
		},
	}
	for _, x := range collapseLoads {
		against := atLoad(x, nameOurs)
		s.rows = append(s.rows, row{name: against, kind: ours})
		for _, name := range []string{nameNginx, nameHAProxy, nameCaddy, nameUnlimited} {
			s.rows = append(s.rows, row{name: atLoad(x, name), kind: rival, against: against})
		}
		s.targets = append(s.targets, target{
			what: fmt.Sprintf("goodput ÷ capacity at %g x", x), limit: 0.98, atLeast: true, of: just(against, goodput),
		})
	}
	stages, err := openStages()
	if err != nil {
		return nil, err
	}
	s.close = func() { closeStages(stages) }
	s.together = func(i int) (round, error) { return collapseRound(e, stages, uint64(i)) }
	return s, nil
}

// stage is a proxy before an upstream of its own that collapses.
type stage struct {
	name     string
	path     string
	address  string // of the proxy
	upstream *wireServer
	backend  atomic.Pointer[backend] // of the load that runs
	callers  sync.Pool
}

func openStages() ([]*stage, error) {
	var all []*stage
	byName := map[string]*stage{}
	for _, r := range recipes {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return all, err
		}
		st := &stage{name: r.name, path: "/slots"}
		st.upstream = &wireServer{listener: l, answer: st.work}
		go st.upstream.serve() // ends when it is closed
		all, byName[r.name] = append(all, st), st
	}
	proxies, err := startProxies(func(name string) string { return byName[name].upstream.listener.Addr().String() })
	for _, p := range proxies {
		byName[p.name].address = p.address
	}
	return all, err
}

func closeStages(all []*stage) {
	for _, st := range all {
		st.upstream.close()
	}
}

// work is what the upstream does. It says when, for the caller's visit.
func (st *stage) work([]byte) []byte {
	b := st.backend.Load()
	if b == nil {
		return statusAnswer("404 Not Found", nil)
	}
	began, ended, ok := b.work()
	if !ok {
		return statusAnswer("500 Internal Server Error", nil)
	}
	return statusAnswer("200 OK", fmt.Appendf(nil, "%d %d", began.UnixNano(), ended.UnixNano()))
}

// front is the stage as one load sees it.
func (st *stage) front(name string) *front {
	b := newBackend()
	st.backend.Store(b)
	return &front{name: name, backend: b, handler: st}
}

// ServeHTTP brings one caller to the proxy, and leaves when its patience ends.
func (st *stage) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	v := w.(*visit)
	v.status = http.StatusBadGateway
	c, err := st.caller()
	if err != nil {
		return
	}
	_ = c.conn.SetDeadline(v.arrived.Add(answerBy))
	status, err := c.ask()
	if err != nil {
		_ = c.conn.Close()
		return
	}
	v.status = status
	if status == http.StatusOK {
		var began, ended int64
		if _, err := fmt.Sscan(string(c.body), &began, &ended); err == nil {
			v.began, v.ended, v.served = time.Unix(0, began), time.Unix(0, ended), true
		}
	}
	st.callers.Put(c)
}

func (st *stage) caller() (*wireCaller, error) {
	if c, ok := st.callers.Get().(*wireCaller); ok {
		return c, nil
	}
	c, err := callerOf(st.address, st.path)
	if err == nil {
		c.keep = true
	}
	return c, err
}

// collapseRound measures every load once.
func collapseRound(e effort, stages []*stage, seed uint64) (round, error) {
	m := round{}
	rate := backendSlots / serviceTime.Seconds()
	warmUp := min(e.collapse/2, time.Second)
	w := window{from: warmUp, to: warmUp + e.collapse}
	for k, x := range collapseLoads {
		times := arrivals(seed*100+uint64(k), x*rate, w.to)
		for _, st := range stages {
			m[atLoad(x, st.name)] = st.measure(st.name, times, w)
			if st.name == nameNginx {
				st.path = "/"
				m[atLoad(x, nameUnlimited)] = st.measure(nameUnlimited, times, w)
				st.path = "/slots"
			}
		}
	}
	for name, f := range m {
		if len(f) == 0 {
			return nil, errors.New(name + ": nothing was measured")
		}
	}
	return m, nil
}

func (st *stage) measure(name string, times []time.Duration, w window) figures {
	runtime.GC() // the callers of the last load are not this one's
	st.callers = sync.Pool{}
	f := st.front(name)
	began, capacity := drive([]*front{f}, times, w)
	return f.figures(began, w, capacity)
}
