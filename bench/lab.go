package main

import (
	"fmt"
	"strconv"
	"sync"

	"example.com/forebay/forebaytest/redistest"
)

// lab is a Redis server of our own that the sections of a run share.
var lab = sync.OnceValue(func() *redistest.Server { return redistest.Start(&bench, redistest.Config{}) })

// bench stands in for a test where the kit wants one.
var bench program

// program is a run of this program, seen as a test.
type program struct {
	mu       sync.Mutex // guards cleanups
	cleanups []func()
}

// unfit is what a run panics with that cannot go on: see [suite.run].
type unfit string

func (p *program) Helper()                           {}
func (p *program) Failed() bool                      { return false }
func (p *program) Logf(format string, args ...any)   {}
func (p *program) Fatalf(format string, args ...any) { panic(unfit(fmt.Sprintf(format, args...))) }
func (p *program) Skipf(format string, args ...any)  { panic(unfit(fmt.Sprintf(format, args...))) }

// Cleanup keeps what is to be done at the end.
func (p *program) Cleanup(f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cleanups = append(p.cleanups, f)
}

// end does it, the last first.
func (p *program) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.cleanups) > 0 {
		last := len(p.cleanups) - 1
		p.cleanups[last]()
		p.cleanups = p.cleanups[:last]
	}
}

// serverWork is what the server has done so far.
type serverWork struct {
	cpu    float64 // processor time of its process, ns
	counts redistest.Counts
}

func serverNow() serverWork {
	info := lab().Info("cpu")
	seconds := func(field string) float64 {
		v, err := strconv.ParseFloat(info[field], 64)
		if err != nil {
			panic(unfit("the server does not say " + field))
		}
		return v
	}
	return serverWork{
		cpu:    (seconds("used_cpu_user") + seconds("used_cpu_sys")) * 1e9,
		counts: lab().Counts(),
	}
}

// since returns what the server has done after an earlier moment.
func (now serverWork) since(then serverWork) serverWork {
	return serverWork{now.cpu - then.cpu, now.counts.Since(then.counts)}
}

// watch is what the server and this process did between begin and end.
type watch struct {
	server serverWork
	own    float64 // processor time of this process, ns
}

func (w *watch) begin() { w.server, w.own = serverNow(), cpuTime() }

func (w *watch) end() { w.server, w.own = serverNow().since(w.server), cpuTime()-w.own }

// sent counts the commands that clients sent: those named, and the signs of life of
// their connections, but not what scripts called.
func (s serverWork) sent(commands []string) (calls int, micros float64) {
	for _, name := range append(commands, "ping") {
		calls += s.counts[name].Calls
		micros += float64(s.counts[name].Micros)
	}
	return calls, micros
}
