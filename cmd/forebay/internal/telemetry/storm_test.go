package telemetry

import (
	"errors"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"example.com/forebay"
)

// said returns how many calls the lines of one gate speak of.
func said(lines []logLine, gate string) (n uint64) {
	for _, line := range lines {
		if line.Gate != gate {
			continue
		}
		n += line.LeftOut
		if line.Msg == "decided" {
			n++
		}
	}
	return n
}

// checkPace fails the test if a gate has more than ten lines in any second.
func checkPace(t *testing.T, lines []logLine, gate string) {
	t.Helper()
	var times []time.Time
	for _, line := range lines {
		if line.Gate == gate {
			times = append(times, line.Time)
		}
	}
	for i := maxLines; i < len(times); i++ {
		if d := times[i].Sub(times[i-maxLines]); d < window {
			t.Fatalf("%s: %d lines within %v, line %d at %v", gate, maxLines+1, d, i, times[i])
		}
	}
}

func TestRefusalsMakeTenLinesASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, m := open(t, Options{})
		o := l.Observer()
		for range 5000 { // 5 s of a storm, 1000 a second; the other gate has 2 a second
			o.Observe(refusal("reports"))
			time.Sleep(time.Millisecond)
		}
		for range 5 {
			o.Observe(refusal("orders"))
			time.Sleep(500 * time.Millisecond)
		}
		synctest.Wait()
		lines := m.parsed(t) // the log is open: the end of a storm is said without a next line
		checkPace(t, lines, "reports")
		if n := said(lines, "reports"); n != 5000 {
			t.Errorf("lines speak of %d refusals of reports, want 5000", n)
		}
		if n := said(lines, "orders"); n != 5 || l.LeftOut("orders") != 0 {
			t.Errorf("lines speak of %d refusals of orders, want 5; left out %d", n, l.LeftOut("orders"))
		}
		var reports []logLine
		for _, line := range lines {
			if line.Gate == "reports" {
				reports = append(reports, line)
			}
		}
		last := reports[len(reports)-1]
		if len(reports) != 51 || last.Msg != "left out" || last.LeftOut != 990 {
			t.Errorf("%d lines, the last %+v; want 50 and one that says 990", len(reports), last)
		}
		if got := l.LeftOut("reports"); got != 5000-50 {
			t.Errorf("LeftOut = %d, want %d", got, 5000-50)
		}
	})
}

// A storm that is over is said to be over without a next line or a Close, and a log
// with nothing to say keeps no timer.
func TestEndOfAStormIsSaidOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, m := open(t, Options{})
		for range 100 {
			l.Observer().Observe(refusal("reports"))
		}
		time.Sleep(10 * time.Second)
		lines := m.parsed(t)
		if len(lines) != 11 || lines[10].Msg != "left out" || lines[10].LeftOut != 90 || lines[10].Level != "WARN" {
			t.Fatalf("%d lines, the last %+v", len(lines), lines[len(lines)-1])
		}
		if late := lines[10].Time.Sub(lines[0].Time); late < window || late > 2*window {
			t.Errorf("said after %v", late)
		}
		time.Sleep(time.Hour)
		l.Observer().Observe(refusal("reports"))
		synctest.Wait()
		if lines := m.parsed(t); len(lines) != 12 || lines[11].LeftOut != 0 {
			t.Errorf("after the storm: %+v", lines[11:])
		}
	})
}

func TestFloodCostsBoundedMemoryAndLines(t *testing.T) {
	const callers, each = 100, 1000
	l, m := open(t, Options{})
	o := l.Observer()
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	began := time.Now()
	var wg sync.WaitGroup
	for range callers {
		wg.Go(func() {
			for range each {
				o.Observe(refusal("reports"))
			}
		})
	}
	wg.Wait()
	took := time.Since(began)
	runtime.ReadMemStats(&after)
	if grown := after.TotalAlloc - before.TotalAlloc; grown > 2<<20 {
		t.Errorf("%d refusals allocated %d bytes", callers*each, grown)
	}
	mustClose(t, l)
	lines := m.parsed(t)
	checkPace(t, lines[:len(lines)-1], "reports") // the last is said by Close, which does not wait
	if most := maxLines*(int(took/window)+1) + 1; len(lines) > most {
		t.Errorf("%d lines in %v, want at most %d", len(lines), took, most)
	}
	if n := said(lines, "reports"); n != callers*each {
		t.Errorf("lines speak of %d refusals, want %d", n, callers*each)
	}
	t.Logf("%d refusals in %v", callers*each, took)
}

func TestStuckDestinationStallsNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, m := open(t, Options{Decisions: DecisionsAll})
		m.gate = make(chan struct{})
		accepted := forebay.Event{Gate: "orders", Decision: forebay.Accepted}
		for range 10_000 {
			l.Observer().Observe(accepted) // would never return if it waited
		}
		l.Logger().Info("the program has something to say")
		if got, least := l.LeftOut("orders"), uint64(10_000-queueLength-2); got < least {
			t.Errorf("LeftOut = %d, want at least %d", got, least)
		}
		began := time.Now()
		if err := l.Close(); err == nil || time.Since(began) != closePatience {
			t.Errorf("Close = %v after %v, want an error after %v", err, time.Since(began), closePatience)
		}
		l.Observer().Observe(accepted) // after the end: neither a panic nor a wait
		l.Logger().Info("too late")
		close(m.gate)
		synctest.Wait()
		lines := m.parsed(t)
		if n := said(lines, "orders"); n != 10_001 {
			t.Errorf("lines speak of %d calls, want 10001", n)
		}
		if !m.closed {
			t.Error("the destination is not closed once it takes lines again")
		}
	})
}

func TestFullDiskIsCountedAndSaid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, m := open(t, Options{})
		m.fail(errors.New("no space left"))
		for range 25 {
			l.Observer().Observe(refusal("reports"))
		}
		time.Sleep(time.Minute)
		if got := l.LeftOut("reports"); got != 25 || l.failed.Load() < 10 {
			t.Errorf("LeftOut = %d, want 25; failed %d", got, l.failed.Load())
		}
		m.fail(nil)
		time.Sleep(2 * window)
		if lines := m.parsed(t); len(lines) != 1 || lines[0].LeftOut != 25 {
			t.Errorf("lines = %+v, want one that says 25", lines)
		}
	})
}

func TestAllMeansAll(t *testing.T) {
	l, m := open(t, Options{Decisions: DecisionsAll})
	for range queueLength / 4 {
		l.Observer().Observe(forebay.Event{Gate: "orders", Decision: forebay.Accepted})
		l.Observer().Observe(forebay.Event{Gate: "orders", Kind: forebay.EventReleased})
	}
	mustClose(t, l)
	if lines := m.parsed(t); len(lines) != queueLength/2 || l.LeftOut("orders") != 0 {
		t.Errorf("%d lines, want %d", len(lines), queueLength/2)
	}
}

func TestPacedLoggerBoundsEachMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, m := open(t, Options{})
		for i := range 1000 {
			l.Paced().Warn("upstream failed", "waited_ms", i)
		}
		l.Paced().Warn("caller left")
		l.Logger().Info("reloaded")
		time.Sleep(5 * time.Second)
		lines := m.parsed(t)
		if len(lines) != 13 || lines[12].Message != "upstream failed" || lines[12].LeftOut != 990 {
			t.Errorf("%d lines, the last %+v", len(lines), lines[len(lines)-1])
		}
	})
}

func BenchmarkRefusalInAStorm(b *testing.B) {
	o, _ := Options{}.checked()
	l := start(o, &memory{})
	defer l.Close()
	observe := l.Observer()
	e := refusal("reports")
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			observe.Observe(e)
		}
	})
}
