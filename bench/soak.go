package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	soakRequests = "requests"
	soakHeld     = "slots held after"
	soakBefore   = "goroutines before"
	soakAfter    = "goroutines after"
	soakHeap     = "live heap before, MiB"
	soakHeapNow  = "live heap after, MiB"
)

// soakSuite has the program stand under each kind of load for a minute, and looks at what
// is left.
var soakSuite = &suite{
	name: "soak", making: "soak", document: "soak.md", title: "What a minute of load leaves behind",
	about: `The program itself, one process throughout, before an upstream that answers
after 5 ms and a gate of 20 slots with a line of 100 ms. Each load lasts for a minute. Before and after it nobody is
there: slots are those that the admin port says are held or waited for, goroutines and heap what it says in its metrics.
The heap is what was live at the last collection, after some requests that have made it happen.`,
	sections: []func(effort) (*section, error){soakSection},
	peer:     func() string { return "wrk, h2load of the distribution" },
	work:     func(e effort) string { return fmt.Sprintf("%v of each load", e.soak) },
	limits: []string{
		"A minute finds what leaks with every request or every hundredth. It does not find what leaks once a day.",
		"A live heap below 3.2 MiB is told as 3.2: the program does not collect below 16 MiB, which is what that comes from.",
	},
}

func soakSection(e effort) (*section, error) {
	for _, tool := range []string{"wrk", "h2load"} {
		if findProgram(tool) == "" {
			return nil, fmt.Errorf("%s is not installed; scripts/servers bench installs it", tool)
		}
	}
	p, err := soaked()
	if err != nil {
		return nil, err
	}
	s := &section{
		name: "soak", title: "Loads", rounds: 1,
		about: "wrk and h2load ask over 256 connections and 64 with ten streams each, far above the limit. The slow ones are 200 clients each: readers that take 4 KiB of an answer of 1 MiB ten times a second, senders that send 100 bytes of a body of 100 000 fifty times a second. They hang up after one to three seconds, wherever they are, and others come.",
		columns: []column{
			{name: soakRequests, neutral: true}, {name: soakHeld}, {name: soakBefore, neutral: true}, {name: soakAfter},
			{name: soakHeap, neutral: true}, {name: soakHeapNow},
		},
	}
	for _, load := range []struct {
		name string
		run  func(*proxy, time.Duration) (int, error)
	}{{"wrk", soakWrk}, {"h2load", soakH2load}, {"slow readers", slowReaders}, {"slow senders", slowSenders}} {
		s.rows = append(s.rows, row{name: load.name, kind: ours, measure: func() figures {
			f, err := p.soak(e, load.run)
			if err != nil {
				panic(unfit(load.name + ": " + err.Error()))
			}
			return f
		}})
		s.targets = append(s.targets,
			target{what: load.name + ": slots held after", limit: 0, of: just(load.name, soakHeld)},
			target{what: load.name + ": goroutines after − before", limit: 8, of: func(m round) float64 {
				return m.at(load.name, soakAfter) - m.at(load.name, soakBefore)
			}},
			target{what: load.name + ": live heap after − before, MiB", limit: 2, of: func(m round) float64 {
				return m.at(load.name, soakHeapNow) - m.at(load.name, soakHeap)
			}})
	}
	return s, nil
}

// soaked starts the program alone, before an upstream.
func soaked() (*proxy, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	large, small := okAnswer(1<<20), okAnswer(1<<10)
	up := &wireServer{listener: l, answer: func(path []byte) []byte {
		switch string(path) {
		case "/large":
			return large
		case "/slots":
			time.Sleep(5 * time.Millisecond)
		}
		return small
	}}
	go up.serve() // ends when it is closed
	bench.Cleanup(up.close)
	return recipes[0].start(l.Addr().String())
}

// soak puts one load on the program and looks at it before and after.
func (p *proxy) soak(e effort, load func(*proxy, time.Duration) (int, error)) (figures, error) {
	before, err := p.atRest(e)
	if err != nil {
		return nil, err
	}
	requests, err := load(p, e.soak)
	if err != nil {
		return nil, err
	}
	after, err := p.atRest(e)
	if err != nil {
		return nil, err
	}
	return figures{
		soakRequests: float64(requests), soakHeld: after.held,
		soakBefore: before.goroutines, soakAfter: after.goroutines, soakHeap: before.heap, soakHeapNow: after.heap,
	}, nil
}

// rest is what the program says of itself.
type rest struct{ held, goroutines, heap float64 }

// atRest looks at the program when its clients have gone and what they left has had time
// to end: connections to the upstream are kept for a moment.
func (p *proxy) atRest(e effort) (rest, error) {
	p.load(4, e.soakSettle, exchange{"/", http.StatusOK, 1 << 10})
	for _, c := range p.callers["/"] {
		_ = c.conn.Close()
	}
	p.callers = nil
	time.Sleep(3 * time.Second)
	stats, err := p.ask("/stats")
	if err != nil {
		return rest{}, err
	}
	metrics, err := p.ask("/metrics")
	if err != nil {
		return rest{}, err
	}
	r := rest{held: sumOf(stats, `"(?:in_use|waiting)":(\d+)`), goroutines: sumOf(metrics, `(?m)^go_goroutines (\S+)$`)}
	gogc := sumOf(metrics, `(?m)^go_gc_gogc_percent (\S+)$`)
	r.heap = sumOf(metrics, `(?m)^go_memstats_next_gc_bytes (\S+)$`) / (1 + gogc/100) / (1 << 20)
	return r, nil
}

// ask asks the admin port.
func (p *proxy) ask(path string) (string, error) {
	res, err := http.Get("http://" + p.admin + path)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	defer http.DefaultClient.CloseIdleConnections()
	body, err := io.ReadAll(res.Body)
	return string(body), err
}

// sumOf adds up what a pattern finds.
func sumOf(text, pattern string) (total float64) {
	for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(text, -1) {
		v, err := strconv.ParseFloat(m[1], 64)
		if err != nil {
			panic(unfit(m[0]))
		}
		total += v
	}
	return total
}

func soakWrk(p *proxy, span time.Duration) (int, error) {
	return tool(`(\d+) requests in`, "wrk", "-t2", "-c256", "-d"+strconv.Itoa(int(span.Seconds()))+"s", "http://"+p.address+"/slots")
}

func soakH2load(p *proxy, span time.Duration) (int, error) {
	return tool(`requests: (\d+) total`, "h2load", "-c64", "-m10", "-D"+strconv.Itoa(int(span.Seconds())), "http://"+p.address+"/slots")
}

// tool runs a load generator and returns how many requests it says it made.
func tool(pattern, name string, args ...string) (int, error) {
	out, err := exec.Command(findProgram(name), args...).CombinedOutput()
	if err != nil {
		return 0, fmt.Errorf("%w: %s", err, strings.TrimSpace(string(out)))
	}
	n := int(sumOf(string(out), pattern))
	if n == 0 {
		return 0, errors.New("no request was made: " + string(out))
	}
	return n, nil
}

// slowReaders and slowSenders are clients that hang up somewhere on the way.
func slowReaders(p *proxy, span time.Duration) (int, error) {
	return slowly(p, span, "GET /large HTTP/1.1\r\nHost: bench.example\r\n\r\n", 100*time.Millisecond, func(c net.Conn) error {
		_, err := c.Read(make([]byte, 4<<10))
		return err
	})
}

func slowSenders(p *proxy, span time.Duration) (int, error) {
	piece := make([]byte, 100)
	return slowly(p, span, "POST /slots HTTP/1.1\r\nHost: bench.example\r\nContent-Length: 100000\r\n\r\n", 20*time.Millisecond, func(c net.Conn) error {
		_, err := c.Write(piece)
		return err
	})
}

// slowly has 200 clients do a step at a time until they hang up, and others come.
func slowly(p *proxy, span time.Duration, head string, pause time.Duration, step func(net.Conn) error) (int, error) {
	const clients = 200
	var requests atomic.Int64
	errs := make([]error, clients)
	over := time.Now().Add(span)
	var wg sync.WaitGroup
	for i := range clients {
		wg.Go(func() {
			for n := 0; time.Now().Before(over) && errs[i] == nil; n++ {
				until := time.Now().Add(time.Second + time.Duration((i*7+n*13)%20)*100*time.Millisecond)
				c, err := net.Dial("tcp", p.address)
				if err != nil {
					errs[i] = err
					return
				}
				requests.Add(1)
				_, err = io.WriteString(c, head)
				for err == nil && time.Now().Before(until) {
					time.Sleep(pause)
					err = step(c)
				}
				_ = c.Close() // an answer that was a refusal has ended it before
			}
		})
	}
	wg.Wait()
	return int(requests.Load()), errors.Join(errs...)
}
