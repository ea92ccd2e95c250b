package proxy

import (
	"fmt"
	"math"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"example.com/forebay"
)

// TestDeadlinesThatCanBeRead, and those that cannot: they are counted, and change nothing.
func TestDeadlinesThatCanBeRead(t *testing.T) {
	const none, bad = time.Duration(math.MinInt64), time.Duration(math.MinInt64 + 1)
	grpc := http.Header{"Content-Type": {"application/grpc+proto"}}
	plain := func(lines ...string) http.Header { return http.Header{"X-Request-Timeout": lines} }
	call := func(lines ...string) http.Header {
		h := grpc.Clone()
		h["Grpc-Timeout"] = lines
		return h
	}
	for _, c := range []struct {
		header http.Header
		want   time.Duration
	}{
		{http.Header{}, none}, {grpc, none},
		{call("100m"), 100 * time.Millisecond}, {call("1H"), time.Hour}, {call("2M"), 2 * time.Minute}, {call("3S"), 3 * time.Second},
		{call("4u"), 4 * time.Microsecond}, {call("5n"), 5}, {call("0n"), 0}, {call("99999999n"), 99999999},
		{call("99999999H"), none}, {call("24H"), none}, {call("23H"), 23 * time.Hour}, {call("99999999S"), none},
		{call("5S", "100m"), 100 * time.Millisecond},
		{call(""), bad}, {call("m"), bad}, {call("-1S"), bad}, {call("+1S"), bad}, {call("1"), bad}, {call("1s"), bad}, {call("1.5S"), bad},
		{call("100000000n"), bad}, {call("١S"), bad}, {call("1 S"), bad}, {call(strings.Repeat("9", 1<<16) + "S"), bad}, {call("1S", "x"), bad},
		{http.Header{"Grpc-Timeout": {"1S"}}, none}, // no call of gRPC
		{plain("2.5"), 2500 * time.Millisecond}, {plain("30"), 30 * time.Second}, {plain("1500ms"), 1500 * time.Millisecond},
		{plain("0.5s"), 500 * time.Millisecond}, {plain("2m"), 2 * time.Minute}, {plain("1h"), time.Hour}, {plain("007"), 7 * time.Second},
		{plain("86400"), none}, {plain("999999999999h"), none}, {plain("999999999999"), none}, {plain("86399"), 86399 * time.Second},
		{plain("10", "3"), 3 * time.Second}, {plain("3", "10"), 3 * time.Second}, {call("100m", "5S"), 100 * time.Millisecond},
		{plain("0"), bad}, {plain("0.0s"), bad}, {plain("-1"), bad}, {plain("+1"), bad}, {plain(""), bad}, {plain("1e9"), bad}, {plain("NaN"), bad},
		{plain("Inf"), bad}, {plain("0x10"), bad}, {plain("1m30s"), bad}, {plain("1 s"), bad}, {plain("5d"), bad}, {plain("9999999999999"), bad},
		{plain("1,2"), bad}, {plain(strings.Repeat("9", 1<<16)), bad}, {plain("1.0000000000"), bad},
	} {
		var ignored atomic.Uint64
		h := &Handler{config: Config{DeadlineHeader: "X-Request-Timeout", BadDeadlines: &ignored}}
		got, ok := h.patienceOf(c.header)
		switch {
		case (ignored.Load() > 0) != (c.want == bad):
			t.Errorf("%.60v: %d were ignored", c.header, ignored.Load())
		case c.want == none && ok, c.want >= 0 && (!ok || got != c.want):
			t.Errorf("%.60v: %v, %v; want %v", c.header, got, ok, c.want)
		}
	}
	h := &Handler{}
	if got, ok := h.patienceOf(plain("1")); ok {
		t.Errorf("a header that nobody has named gives %v", got)
	}
	if got, ok := h.patienceOf(call("x")); ok {
		t.Errorf("nonsense gives %v where nobody counts", got)
	}
}

// overAtWork sends a request with a deadline, %d, that passes while the upstream has it: a
// longer one, where the machine was so slow that the request did not get to it.
func (l *lateRig) overAtWork(headers []string) (*http.Response, string) {
	l.Helper()
	last := len(headers) - 1
	for ms := 30; ; ms *= 2 {
		with := append(slices.Clone(headers[:last]), fmt.Sprintf(headers[last], ms))
		res, text := l.get("POST", "/", strings.NewReader("body"), with...)
		if res.StatusCode != 503 && res.Header.Get("Grpc-Status") != "8" {
			return res, text
		}
	}
}

// TestQU20WorkEndsWithTheCallersDeadline: the upstream is told, the slot comes back, and
// no limiter learns from it.
func TestQU20WorkEndsWithTheCallersDeadline(t *testing.T) {
	noLeaks(t)
	for _, c := range []struct{ scheme, transport string }{{"http", ""}, {"http", TransportStandard}, {"h2c", ""}} {
		l := newLateRig(t, c.scheme, func(config *Config) {
			config.Transport, config.DeadlineHeader = c.transport, "X-Request-Timeout"
		})
		l.proxy.patience(patience) // of the upstream, which is not what ends it
		for i, headers := range [][]string{
			{"X-Request-Timeout", "%dms"},
			{"Content-Type", "application/grpc", "Te", "trailers", "Grpc-Timeout", "%dm"},
		} {
			res, text := l.overAtWork(headers)
			if i == 0 && (res.StatusCode != 504 || !strings.Contains(text, `"deadline_exceeded"`)) {
				t.Errorf("%v: %d %s", c, res.StatusCode, text)
			}
			if i == 1 && (res.StatusCode != 200 || res.Header.Get("Grpc-Status") != "4" || text != "") {
				t.Errorf("%v: %d %v %s", c, res.StatusCode, res.Header, text)
			}
			if r := l.result(); r.Err != ErrDeadline || r.Outcome != forebay.OutcomeAborted {
				t.Errorf("%v: %+v", c, r)
			}
			l.is(0, 0)
			eventually(t, "the upstream is rid of it", func() bool { return l.working.Load() == 0 })
		}
	}
}
