package main

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"
)

// proxy is one that runs, with the connections to it.
type proxy struct {
	name    string
	kind    kind
	address string
	admin   string
	process *process
	callers map[string][]*wireCaller // by path
}

// exchange is what is asked for, and the answer that must come.
type exchange struct {
	path   string
	status int
	length int // of the body; 0: any
}

var (
	smallExchange   = exchange{"/small", http.StatusOK, 1 << 10}
	largeExchange   = exchange{"/large", http.StatusOK, 1 << 20}
	refusedExchange = exchange{"/full", http.StatusServiceUnavailable, 0}
)

// load sends so many requests over so many connections, and measures. It panics with
// unfit if an answer is not as it should be.
func (p *proxy) load(conns, requests int, what exchange) figures {
	callers, err := p.callersFor(conns, what.path)
	if err != nil {
		panic(unfit(p.name + ": " + err.Error()))
	}
	took := make([][]time.Duration, conns)
	errs := make([]error, conns)
	used, began := p.process.cpu(), time.Now()
	var wg sync.WaitGroup
	for i, c := range callers[:conns] {
		wg.Go(func() { took[i], errs[i] = c.askMany((requests+conns-1)/conns, what) })
	}
	wg.Wait()
	wall, spent := time.Since(began), p.process.cpu()-used
	if err := errors.Join(errs...); err != nil {
		panic(unfit(p.name + ": " + err.Error()))
	}
	all := slices.Concat(took...)
	return figures{
		cpuAnswer: spent / 1000 / float64(len(all)),
		perSecond: float64(len(all)) / wall.Seconds(),
		p50Micros: micros(quantile(all, 0.5)),
		p99Micros: micros(quantile(all, 0.99)),
	}
}

// callersFor opens the connections that are not open yet.
func (p *proxy) callersFor(conns int, path string) ([]*wireCaller, error) {
	if p.callers == nil {
		p.callers = map[string][]*wireCaller{}
	}
	for len(p.callers[path]) < conns {
		c, err := callerOf(p.address, path)
		if err != nil {
			return nil, err
		}
		p.callers[path] = append(p.callers[path], c)
	}
	return p.callers[path], nil
}

// askMany asks again and again, and returns how long each answer took.
func (c *wireCaller) askMany(requests int, what exchange) ([]time.Duration, error) {
	took := make([]time.Duration, 0, requests)
	for range requests {
		began := time.Now()
		got, err := c.ask()
		if err != nil {
			return nil, err
		}
		if got != what.status || what.length > 0 && c.length != what.length {
			return nil, fmt.Errorf("status %d with %d bytes; it must be %d with %d", got, c.length, what.status, what.length)
		}
		took = append(took, time.Since(began))
	}
	return took, nil
}

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }
