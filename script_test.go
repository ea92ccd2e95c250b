package forebay

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"example.com/forebay/internal/admit"
)

// playsItself checks that the machine gives the script's answers again, to the
// letter.
func playsItself(t *testing.T, script string) {
	t.Helper()
	var out bytes.Buffer
	if err := admit.Play(strings.NewReader(script), &out); err != nil {
		t.Fatal(err)
	}
	was, is := strings.Split(script, "\n"), strings.Split(out.String(), "\n")
	for i := range max(len(was), len(is)) {
		if i >= len(was) || i >= len(is) || was[i] != is[i] {
			t.Fatalf("line %d of %d (%d played) differs:\n%s\n%s", i+1, len(was), len(is), was[min(i, len(was)-1)], is[min(i, len(is)-1)])
		}
	}
}

func TestScriptOfALine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var script bytes.Buffer
		g := gateOf(t, Config{MaxInFlight: 1, MaxWait: 100 * time.Millisecond, MaxWaiting: 2, Script: &script})
		l := take(t, g, 1)
		time.Sleep(10 * time.Millisecond)
		a := queued(t, context.Background(), g, Call{})
		time.Sleep(20 * time.Millisecond)
		l.Release()
		a.granted(t, 20*time.Millisecond)
		must(g.SetLimit(0))
		g.script.writing.Wait()
		want := "0s new limit=1 wait=100ms line=2 -> ok\n" +
			"0s arrive 1 try -> granted\n" +
			"10ms arrive 2 -> queued\n" +
			"30ms release cost=1 -> 2 granted after 20ms\n" +
			"30ms limit 0 -> ok\n"
		if script.String() != want {
			t.Errorf("script\n%swant\n%s", script.String(), want)
		}
		playsItself(t, script.String())
	})
}

// Whatever happens at once: the script tells it in the order in which it did.
func TestScriptOfALoadPlaysItself(t *testing.T) {
	for name, c := range map[string]Config{
		"plain":   {MaxInFlight: 3, MaxWait: 100 * time.Microsecond, MaxWaiting: 6},
		"default": {MaxInFlight: 2, MaxWait: 200 * time.Microsecond, Track: true},
		"limiter": {MaxInFlight: 3, MaxWait: 100 * time.Microsecond, Limiter: &wanderer{}},
	} {
		t.Run(name, func(t *testing.T) {
			var script bytes.Buffer
			c.Script = &script
			g := gateOf(t, c)
			chain, err := NewChain(g, gateOf(t, Config{MaxInFlight: 2, MaxWait: time.Millisecond}))
			must(err)
			var wg sync.WaitGroup
			for i := range 8 {
				wg.Go(func() { scriptedCalls(g, chain, rand.New(rand.NewPCG(1, uint64(i)))) })
			}
			wg.Wait()
			if st := g.Stats(); st.ScriptErrors != 0 || st.InUse != 0 {
				t.Errorf("%+v", st)
			}
			g.script.writing.Wait()
			if n := strings.Count(script.String(), "\n"); n < 1000 {
				t.Errorf("a script of %d lines", n)
			}
			playsItself(t, script.String())
		})
	}
}

// wanderer is a limiter that moves all the time.
type wanderer struct{ n int }

func (w *wanderer) Observe(*Observation) int {
	w.n++
	return 1 + w.n/7%4
}

func scriptedCalls(g *Gate, chain *Chain, rng *rand.Rand) {
	for range 150 {
		ctx, cancel := context.WithCancel(context.Background())
		switch rng.IntN(12) {
		case 0:
			cancel()
		case 1, 2:
			cancel()
			ctx, cancel = context.WithTimeout(context.Background(), time.Duration(rng.IntN(100))*time.Microsecond)
		case 3:
			go cancel()
		case 4:
			must(g.SetLimit(rng.IntN(5)))
		case 5:
			must(g.Reconfigure(g.Config()))
		case 6:
			soon, stop := context.WithTimeout(context.Background(), 10*time.Microsecond)
			_ = g.Drain(soon)
			g.Resume()
			stop()
		}
		var a acquirer = g
		if rng.IntN(4) == 0 {
			a = chain
		}
		if l, err := a.Acquire(ctx, Call{Cost: rng.IntN(3)}); err == nil {
			l.ReleaseAs(Outcome(rng.IntN(4)))
		}
		cancel()
	}
}

// brokenWriter fails, or waits.
type brokenWriter struct {
	err  error
	wait chan bool
}

func (w *brokenWriter) Write(p []byte) (int, error) {
	if w.wait != nil {
		<-w.wait
	}
	return len(p), w.err
}

func TestFailingScriptIsCounted(t *testing.T) {
	g := gateOf(t, Config{MaxInFlight: 1, Script: &brokenWriter{err: errors.New("disk full")}})
	take(t, g, 1).Release()
	g.script.writing.Wait()
	if st := g.Stats(); st.ScriptErrors == 0 || st.InUse != 0 || st.Accepted != 1 {
		t.Errorf("%+v, want errors of the script and a gate that works", st)
	}
}

// rudeWriter ends in a way that no writer should.
type rudeWriter struct{ end func() }

func (w rudeWriter) Write([]byte) (int, error) {
	w.end()
	return 0, nil
}

// A writer that panics or ends its goroutine ends the script, and nothing else.
func TestRudeScriptIsCounted(t *testing.T) {
	for name, end := range map[string]func(){"panic": func() { panic("disk") }, "goexit": runtime.Goexit} {
		g := gateOf(t, Config{MaxInFlight: 1, Script: rudeWriter{end}})
		for range 3 {
			take(t, g, 1).Release()
			g.script.writing.Wait()
		}
		if st := g.Stats(); st.ScriptErrors == 0 || st.InUse != 0 || st.Accepted != 3 {
			t.Errorf("%s: %+v", name, st)
		}
	}
}

// A writer that takes nothing holds up nobody.
func TestSlowScriptDoesNotStallTheGate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &brokenWriter{wait: make(chan bool)}
		g := gateOf(t, Config{MaxInFlight: 2, Script: w})
		for range 100 {
			take(t, g, 1).Release()
		}
		shows(t, g, "0/2, accepted 100")
		close(w.wait)
		g.script.writing.Wait()
	})
}

// What a writer that is much too slow does not take is dropped, and said so.
func TestScriptWithAHoleIsCounted(t *testing.T) {
	s := &script{}
	if s.pending = make([]byte, maxPending+1); !s.collectLocked() {
		t.Error("more than may wait is not reported")
	}
	s.pending = nil
	s.recorded.WriteString("9s release -> ok\n")
	if !s.collectLocked() || len(s.pending) != 0 {
		t.Error("a script with a hole goes on")
	}
}
