package forebay

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// takeAs returns a lease that the gate must give that caller at once.
func takeAs(t testing.TB, g *Gate, caller string) Lease {
	t.Helper()
	l, ok := g.TryAcquire(Call{Caller: caller})
	if !ok {
		t.Fatalf("gate %q gave %s no lease: %s", g.Name(), caller, state(t, g))
	}
	return l
}

// capped checks that a caller is refused for what it has itself.
func capped(t testing.TB, g *Gate, caller string) {
	t.Helper()
	before := g.Stats().RejectedCaller
	if l, ok := g.TryAcquire(Call{Caller: caller}); ok {
		l.Release()
		t.Errorf("%s got a lease above the bound: %s", caller, state(t, g))
	} else if g.Stats().RejectedCaller != before+1 {
		t.Errorf("%s was refused, but not for that: %s", caller, state(t, g))
	}
}

func TestCallerIsBounded(t *testing.T) {
	g := gateOf(t, Config{MaxInFlight: 8, PerCaller: PerCaller{MaxInFlight: 2}})
	a1, a2 := takeAs(t, g, "a"), takeAs(t, g, "a")
	capped(t, g, "a")
	b := takeAs(t, g, "b")
	shows(t, g, "3/8, accepted 3, capped 1, callers 2")
	a1.Release()
	a1.Release()
	a3 := takeAs(t, g, "a")
	capped(t, g, "a")
	_, err := g.Acquire(t.Context(), Call{Caller: "a"})
	var rejected *RejectedError
	if !errors.Is(err, ErrRejected) || !errors.As(err, &rejected) || rejected.Decision() != RejectedCaller {
		t.Errorf("Acquire: %v", err)
	}
	for _, l := range []Lease{a2, a3, b} {
		l.Release()
	}
	shows(t, g, "0/8, accepted 4, stale 1, capped 3")
	for range 3 { // nobody knows whose they are
		defer take(t, g, 1).Release()
	}
}

// TestCallerWaitsForItsOwn: its patience ends as rejected_caller while its own calls
// run, and who came later goes first.
func TestCallerWaitsForItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := gateOf(t, Config{MaxInFlight: 4, MaxWait: 100 * time.Millisecond, MaxWaiting: 8, PerCaller: PerCaller{MaxInFlight: 1}})
		a := takeAs(t, g, "a")
		served := queued(t, context.Background(), g, Call{Caller: "a"})
		vain := queued(t, context.Background(), g, Call{Caller: "a"})
		ctx, leave := context.WithCancel(context.Background())
		gone := queued(t, ctx, g, Call{Caller: "a"})
		b := takeAs(t, g, "b") // past them
		leave()
		gone.refused(t, Canceled, 0)
		time.Sleep(50 * time.Millisecond)
		a.Release()
		served.granted(t, 50*time.Millisecond)
		time.Sleep(50 * time.Millisecond)
		vain.refused(t, RejectedCaller, 100*time.Millisecond)
		b.Release()
		served.lease.Release()
		shows(t, g, "0/4, accepted 3, canceled 1, capped 1")
	})
}

// TestKR05LiveCallersAreNeverForgotten: whatever number of others comes and goes, and
// nothing is left of those.
func TestKR05LiveCallersAreNeverForgotten(t *testing.T) {
	g := gateOf(t, Config{MaxInFlight: 2, PerCaller: PerCaller{MaxInFlight: 1}})
	a := takeAs(t, g, "a")
	for i := range 100_000 {
		takeAs(t, g, fmt.Sprint("caller ", i)).Release()
	}
	capped(t, g, "a")
	if n := g.Stats().Callers; n != 1 {
		t.Errorf("%d callers are known", n)
	}
	a.Release()
	takeAs(t, g, "a").Release()
	if st := g.Stats(); st.Callers != 0 || st.CallersBeyond != 0 {
		t.Errorf("%+v", st)
	}
}

// TestKR05FullTableSharesOneBound: those who find no place count as one, are counted,
// and take nobody's place.
func TestKR05FullTableSharesOneBound(t *testing.T) {
	g := gateOf(t, Config{MaxInFlight: 10, PerCaller: PerCaller{MaxInFlight: 2, MaxCallers: 3}})
	var leases []Lease
	for _, caller := range []string{"a", "b", "c", "c"} {
		leases = append(leases, takeAs(t, g, caller))
	}
	d := takeAs(t, g, "d")
	e := takeAs(t, g, "e")
	capped(t, g, "f")
	capped(t, g, "c")
	leases = append(leases, takeAs(t, g, "a"))
	shows(t, g, "7/10, accepted 7, capped 2, callers 3, beyond 3")
	leases[1].Release() // b's only one
	leases = append(leases, takeAs(t, g, "f"), takeAs(t, g, "f"))
	capped(t, g, "f")
	d.Release()
	e.Release()
	for _, l := range leases {
		l.Release()
	}
	shows(t, g, "0/10, accepted 9, stale 1, capped 3, beyond 3")
}

// TestCallersOfChainsAreUnwound: a later gate that refuses costs the caller nothing at
// the first, and each gate has its own bound.
func TestCallersOfChainsAreUnwound(t *testing.T) {
	first := gateOf(t, Config{Name: "first", MaxInFlight: 8, PerCaller: PerCaller{MaxInFlight: 2}})
	second := gateOf(t, Config{Name: "second", MaxInFlight: 8, PerCaller: PerCaller{MaxInFlight: 1}})
	c, err := NewChain(first, second)
	if err != nil {
		t.Fatal(err)
	}
	held, err := c.Acquire(t.Context(), Call{Caller: "a"})
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if _, err := c.Acquire(t.Context(), Call{Caller: "a"}); !errors.Is(err, ErrRejected) {
			t.Errorf("%v", err)
		}
	}
	shows(t, first, "1/8, accepted 1, callers 1")
	shows(t, second, "1/8, capped 3, callers 1")
	held.Release()
	shows(t, first, "0/8, accepted 1")
	shows(t, second, "0/8, capped 3")
}

// TestCallersSurviveReconfiguring: leases from before count once the bound is back, and
// their ends too.
func TestCallersSurviveReconfiguring(t *testing.T) {
	bounded := Config{MaxInFlight: 8, PerCaller: PerCaller{MaxInFlight: 1}}
	g := gateOf(t, bounded)
	early, late := takeAs(t, g, "a"), takeAs(t, g, "b")
	if err := g.Reconfigure(Config{MaxInFlight: 8}); err != nil {
		t.Fatal(err)
	}
	free := takeAs(t, g, "a")
	early.Release()
	if err := g.Reconfigure(bounded); err != nil {
		t.Fatal(err)
	}
	capped(t, g, "b")
	takeAs(t, g, "a").Release()
	free.Release()
	late.Release()
	shows(t, g, "0/8, accepted 4, capped 1")
}

// TestCallersUnderLoad: no caller ever has more than its bound, and in the end there is
// nobody.
func TestCallersUnderLoad(t *testing.T) {
	const each, callers = 3, 5
	g := gateOf(t, Config{MaxInFlight: 9, MaxWait: time.Second, MaxWaiting: 20, PerCaller: PerCaller{MaxInFlight: each}})
	var has [callers]atomic.Int32
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			for range 300 {
				n := rand.IntN(callers)
				ctx, cancel := context.WithCancel(t.Context())
				if rand.IntN(4) == 0 {
					go cancel()
				}
				l, err := g.Acquire(ctx, Call{Caller: fmt.Sprint(n)})
				if err == nil {
					if now := has[n].Add(1); now > each {
						t.Errorf("caller %d has %d", n, now)
					}
					has[n].Add(-1)
					l.Release()
				}
				cancel()
			}
		})
	}
	all.Wait()
	if st := g.Stats(); st.Callers != 0 || st.InUse != 0 || st.Decisions() != 16*300 {
		t.Errorf("%+v", st)
	}
}

// TestKR04CallersByAddress: one customer of IPv6 is one caller, in whatever form.
func TestKR04CallersByAddress(t *testing.T) {
	for _, c := range []struct {
		addr   string
		prefix int
		want   string
	}{
		{"203.0.113.9:4711", 0, "203.0.113.9"},
		{"203.0.113.9", 0, "203.0.113.9"},
		{"[::ffff:203.0.113.9]:80", 0, "203.0.113.9"},
		{"[2001:db8:1:2:3:4:5:6]:80", 0, "2001:db8:1:2::/64"},
		{"2001:DB8:1:2:0:0:0:1", 0, "2001:db8:1:2::/64"},
		{"[2001:db8:1:2::1%eth0]:80", 0, "2001:db8:1:2::/64"},
		{"[2001:db8:1:2::1]:80", 48, "2001:db8:1::/48"},
		{"[2001:db8:1:2::1]:80", 128, "2001:db8:1:2::1/128"},
		{"@", 0, ""},
		{"", 0, ""},
		{"[2001::zz]:80", 0, ""},
	} {
		if got := addressName(c.addr, c.prefix); got != c.want {
			t.Errorf("%s, %d: %q, want %q", c.addr, c.prefix, got, c.want)
		}
	}
	g := gateOf(t, Config{MaxInFlight: 100, PerCaller: PerCaller{MaxInFlight: 1}})
	l, _ := g.TryAcquire(Call{RemoteIP: "2001:db8::1"})
	defer l.Release()
	for i := range 1000 {
		if _, ok := g.TryAcquire(Call{RemoteIP: fmt.Sprintf("2001:db8::%x", i)}); ok {
			t.Fatalf("address %d of the same customer got a slot of its own", i)
		}
	}
}

// TestRJ09CallerIsTold429: whoever has too much is told so, and the gate's health is
// not at stake.
func TestRJ09CallerIsTold429(t *testing.T) {
	for _, c := range []struct {
		caller  PerCaller
		refusal Refusal
		status  int
	}{
		{PerCaller{MaxInFlight: 1}, Refusal{}, 429},
		{PerCaller{MaxInFlight: 1}, Refusal{Status: 500}, 429},
		{PerCaller{MaxInFlight: 1, Status: 503}, Refusal{Status: 500}, 503},
	} {
		g := gateOf(t, Config{Name: "reports", MaxInFlight: 4, PerCaller: c.caller, Refusal: c.refusal})
		health := NewHealth(g)
		l, _ := g.TryAcquire(Call{RemoteIP: "192.0.2.1"})
		w := httptest.NewRecorder()
		g.Wrap(http.HandlerFunc(echoOK)).ServeHTTP(w, httptest.NewRequest("GET", "/", nil)) // from 192.0.2.1
		h := w.Header()
		if w.Code != c.status || h.Get("Retry-After") == "" || h.Get("Cache-Control") != "no-store" || h.Get("Proxy-Status") != `forebay; error=http_request_denied; details="reports rejected_caller"` ||
			!strings.Contains(w.Body.String(), `"error":"caller_busy","reason":"rejected_caller"`) {
			t.Errorf("%+v: %d %v %s", c, w.Code, h, w.Body)
		}
		if rep := health.Report(); rep.Status != "ok" {
			t.Errorf("the gate is %+v", rep)
		}
		l.Release()
	}
}

// TestCallersByHeader: the last line counts; who has none counts by its address.
func TestCallersByHeader(t *testing.T) {
	g := gateOf(t, Config{MaxInFlight: 8, PerCaller: PerCaller{MaxInFlight: 1, Header: "x-company"}})
	status := func(addr string, companies ...string) (code int) {
		r := httptest.NewRequest("GET", "/", nil)
		r.RemoteAddr, r.Header["X-Company"] = addr, companies
		w := httptest.NewRecorder()
		g.Wrap(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
			again := httptest.NewRecorder()
			r := httptest.NewRequest("GET", "/", nil)
			r.RemoteAddr, r.Header["X-Company"] = "192.0.2.7:1", []string{"acme"}
			g.Wrap(http.HandlerFunc(echoOK)).ServeHTTP(again, r)
			code = again.Code
		})).ServeHTTP(w, r)
		return code
	}
	for _, c := range []struct {
		companies []string
		addr      string
		want      int // of acme, meanwhile
	}{
		{[]string{"acme"}, "203.0.113.9:1", 429},
		{[]string{"other", "acme"}, "203.0.113.9:1", 429},
		{[]string{"acme", "other"}, "203.0.113.9:1", 200},
		{nil, "192.0.2.7:1", 200},
	} {
		if got := status(c.addr, c.companies...); got != c.want {
			t.Errorf("beside %v: %d, want %d", c.companies, got, c.want)
		}
	}
	long := strings.Repeat("x", 1<<16)
	l := takeAs(t, g, long+"1")
	capped(t, g, long+"2") // what is beyond 128 bytes does not count
	l.Release()
}

func TestPerCallerMistakes(t *testing.T) {
	_, err := New(Config{MaxInFlight: 1, PerCaller: PerCaller{MaxInFlight: -1, Header: "a b", IPv6Prefix: 129, MaxCallers: -1, Status: 200}})
	for _, field := range []string{"MaxInFlight is -1", "Header is", "IPv6Prefix is 129", "MaxCallers is -1", "Status is 200"} {
		if err == nil || !strings.Contains(err.Error(), "forebay: PerCaller."+field) {
			t.Errorf("%s is not named: %v", field, err)
		}
	}
	if _, err := New(Config{MaxInFlight: 1, PerCaller: PerCaller{Header: "X"}}); err == nil {
		t.Error("fields that do nothing are taken")
	}
}

// A caller who was here lately costs nothing but the slot, and a new one his name and his
// place.
func TestCallersAllocateLittle(t *testing.T) {
	g := gateOf(t, Config{MaxInFlight: 8, PerCaller: PerCaller{MaxInFlight: 4}})
	call := func(caller string) float64 {
		return testing.AllocsPerRun(500, func() {
			l, _ := g.Acquire(context.Background(), Call{Caller: caller})
			l.Release()
		})
	}
	if n := call("regular"); n > 0 {
		t.Errorf("%v allocations for a caller that comes again", n)
	}
	names := 0
	if n := testing.AllocsPerRun(500, func() {
		names++
		l, _ := g.Acquire(context.Background(), Call{Caller: fmt.Sprint("new", names)})
		l.Release()
	}); n > 5 { // two of them are the name's own making
		t.Errorf("%v allocations for a caller that is new", n)
	}
	if n := allocations(g.Wrap(http.HandlerFunc(echoOK)), httptest.NewRequest("GET", "/", nil)); n > 2 {
		t.Errorf("%v allocations for a request", n)
	}
}
