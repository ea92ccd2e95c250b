package main

import (
	"bufio"
	"io"
	"math"
	"net"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestArrivals(t *testing.T) {
	times := arrivals(1, 400, 10*time.Second)
	if len(times) != 4000 {
		t.Errorf("%d arrivals, want 4000", len(times))
	}
	if !slices.IsSorted(times) || times[0] < 0 || times[len(times)-1] >= 10*time.Second {
		t.Error("arrivals are not in order within the span")
	}
	if !slices.Equal(times, arrivals(1, 400, 10*time.Second)) {
		t.Error("the same seed gave other arrivals")
	}
}

func TestWindowPart(t *testing.T) {
	w := window{100, 200}
	for _, c := range []struct {
		began, ended time.Duration
		want         float64
	}{
		{0, 100, 0}, {50, 150, 0.5}, {100, 200, 1}, {120, 130, 1}, {175, 225, 0.5}, {200, 300, 0}, {0, 400, 0.25}, {5, 5, 0},
	} {
		if got := w.part(c.began, c.ended); got != c.want {
			t.Errorf("part(%d, %d) = %g, want %g", c.began, c.ended, got, c.want)
		}
	}
}

// With callers far over capacity a perfect gate keeps every slot at work, and with
// half of it everybody is served.
func TestIdealGate(t *testing.T) {
	const rate = 400.0
	w := window{time.Second, 5 * time.Second}
	for x, want := range map[float64]float64{0.5: 0.5, 2: 1, 10: 1} {
		f := idealGate(arrivals(3, x*rate, w.to), w, rate)
		if got := f[goodput]; math.Abs(got-want) > 0.03 {
			t.Errorf("goodput at %g x = %g, want about %g", x, got, want)
		}
	}
	at1 := idealGate(arrivals(3, rate, w.to), w, rate)[goodput]
	if at1 < 0.93 || at1 > 1 {
		t.Errorf("goodput at 1 x = %g, want 0.93 to 1", at1)
	}
}

func TestQuantile(t *testing.T) {
	values := []time.Duration{5, 1, 4, 2, 3}
	for p, want := range map[float64]time.Duration{0: 1, 0.5: 3, 0.8: 4, 0.99: 5, 1: 5} {
		if got := quantile(slices.Clone(values), p); got != want {
			t.Errorf("quantile %g = %d, want %d", p, got, want)
		}
	}
	if got := quantile(nil, 0.5); got != 0 {
		t.Errorf("quantile of nothing = %d", got)
	}
}

func TestWireReadsAnswers(t *testing.T) {
	for _, c := range []struct {
		text   string
		status int
		fails  bool
	}{
		{"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nDate: x\r\n\r\nhi", 200, false},
		{"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n", 503, false},
		{"HTTP/1.1 200 OK\r\n\r\n", 0, true},
		{"HTTP\r\n", 0, true},
		{"", 0, true},
	} {
		w := &wire{answers: bufio.NewReader(strings.NewReader(c.text))}
		status, err := w.answer()
		if status != c.status || (err != nil) != c.fails {
			t.Errorf("%q: status %d, error %v; want %d, error %t", c.text, status, err, c.status, c.fails)
		}
	}
}

// A client that gets another status than it was told says so.
func TestWireChecksTheStatus(t *testing.T) {
	here, there := net.Pipe()
	defer here.Close()
	go func() {
		defer there.Close()
		_, _ = io.ReadFull(there, make([]byte, len(getRequest)))
		_, _ = io.WriteString(there, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
	}()
	if err := newWire(here).ask(1, 503); err == nil || !strings.Contains(err.Error(), "200") {
		t.Errorf("ask = %v, want an error that names the status 200", err)
	}
}
