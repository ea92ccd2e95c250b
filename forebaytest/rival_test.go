package forebaytest

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"example.com/forebay"
)

// rival is a second gate, as plain as it can be: a lock and a list. Without a
// fault it passes the suite; each fault breaks one promise.
type rival struct {
	cfg     forebay.Config
	backend http.Handler
	fault   string

	mu       sync.Mutex // guards what follows
	limit    int
	inFlight int
	draining bool
	late     bool // a fault has shown itself
	idle     chan struct{}
	line     []*rivalCall
	stats    forebay.Stats
}

type rivalCall struct {
	cost    int
	decided chan forebay.Decision // room for one
}

func openRival(fault string) Opener {
	return func(t testing.TB, c forebay.Config, backend http.Handler) *System {
		v := &rival{cfg: c, backend: backend, fault: fault, limit: c.MaxInFlight}
		return &System{
			Handler: v, Stats: v.snapshot, Drain: v.drain, SetLimit: v.setLimit,
			Resume:  func() { v.mu.Lock(); v.draining = false; v.mu.Unlock() },
			SetCost: func(r *http.Request, cost int) { r.Header.Set("Cost", strconv.Itoa(cost)) },
		}
	}
}

func (v *rival) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	cost, _ := strconv.Atoi(r.Header.Get("Cost"))
	cost = max(cost, 1)
	asks := r.Method == http.MethodOptions && (r.Header.Get("Origin") != "" || v.fault == "gates no OPTIONS")
	if asks && v.fault != "gates preflights" {
		v.backend.ServeHTTP(w, r)
		return
	}
	d := v.admit(r.Context(), cost)
	if d != forebay.Accepted {
		v.refuse(w, r, d)
		return
	}
	var once sync.Once
	release := func() { once.Do(func() { v.release(cost) }) }
	defer v.end(release)
	if v.fault == "gives the slot of a reset stream away" {
		defer context.AfterFunc(r.Context(), release)()
	}
	if v.fault == "holds answers back" {
		w = struct{ http.ResponseWriter }{w}
	}
	v.backend.ServeHTTP(w, r)
}

// end gives the slot back, also when the handler panics.
func (v *rival) end(release func()) {
	p := recover()
	switch {
	case p == nil,
		p == http.ErrAbortHandler && v.fault != "keeps the slot of an aborted answer",
		p != nil && p != http.ErrAbortHandler && v.fault != "keeps the slot of a panic":
		release()
	}
	if p == http.ErrAbortHandler && v.fault == "makes a crash of an abort" {
		p = "the handler crashed"
	}
	if p != nil {
		panic(p)
	}
}

// admit decides one request, in a bubble.
func (v *rival) admit(ctx context.Context, cost int) forebay.Decision {
	v.mu.Lock()
	d := v.judge(cost)
	if d == forebay.Accepted {
		v.start(cost)
	}
	if d != forebay.Undecided {
		v.count(d)
		v.mu.Unlock()
		if d == forebay.RejectedBusy && v.fault == "refuses late" {
			time.Sleep(ms)
		}
		return d
	}
	call := &rivalCall{cost: cost, decided: make(chan forebay.Decision, 1)}
	v.line = append(v.line, call)
	v.mu.Unlock()
	return v.wait(ctx, call)
}

// judge says what becomes of an arrival; Undecided: it waits.
func (v *rival) judge(cost int) forebay.Decision {
	places := v.cfg.MaxWaiting
	switch {
	case v.fault == "admits everybody":
		return forebay.Accepted
	case cost > v.cfg.MaxInFlight:
		return forebay.RejectedTooLarge
	case v.draining && v.fault != "admits while it drains":
		return forebay.RejectedDraining
	case v.limit == 0 && v.inFlight == 0 && v.fault == "lets one through though closed":
		return forebay.Accepted
	case v.limit == 0:
		return forebay.RejectedBusy
	case v.inFlight+cost <= v.limit && (len(v.line) == 0 || v.fault == "lets the light pass the heavy"):
		return forebay.Accepted
	case v.cfg.MaxWait == 0 && v.fault == "waits without patience":
		return forebay.Undecided
	case v.cfg.MaxWait == 0, len(v.line) >= places && v.fault != "keeps a line without end":
		return forebay.RejectedBusy
	}
	return forebay.Undecided
}

func (v *rival) start(cost int) {
	if v.fault == "counts requests, not cost" {
		cost = 1
	}
	if v.fault == "checks first and counts later" && v.inFlight == v.limit-1 && !v.late {
		v.late = true
		time.AfterFunc(1, func() { v.mu.Lock(); v.inFlight++; v.mu.Unlock() })
		cost = 0
	}
	v.inFlight += cost
	v.stats.Calls++
	v.stats.Granted++
}

func (v *rival) wait(ctx context.Context, call *rivalCall) forebay.Decision {
	patience := v.cfg.MaxWait
	switch v.fault {
	case "waits twice as long":
		patience *= 2
	case "waits without patience":
		patience = max(patience, 10*ms)
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	left := ctx.Done()
	if v.fault == "runs work for the departed" {
		left = nil
	}
	select {
	case d := <-call.decided:
		return d
	case <-timer.C:
		return v.quit(call, forebay.RejectedTimeout)
	case <-left:
		return v.quit(call, forebay.Canceled)
	}
}

func (v *rival) quit(call *rivalCall, d forebay.Decision) forebay.Decision {
	v.mu.Lock()
	defer v.mu.Unlock()
	i := slices.Index(v.line, call)
	if i < 0 {
		granted := <-call.decided
		if granted == forebay.Accepted && d == forebay.Canceled {
			v.stats.Accepted--
			v.giveBack(call.cost)
			v.count(d)
			return d
		}
		return granted
	}
	v.count(d)
	if v.fault == "keeps the place of who left" && d == forebay.Canceled {
		return d
	}
	if v.fault == "loses a slot with each wait in vain" && d == forebay.RejectedTimeout {
		v.limit--
	}
	if v.fault == "loses a slot with each caller that leaves" && d == forebay.Canceled && len(v.line) > 10 {
		v.limit--
	}
	v.line = slices.Delete(v.line, i, i+1)
	if v.fault != "sleeps when the head leaves" {
		v.dispatch()
	}
	return d
}

func (v *rival) dispatch() {
	for len(v.line) > 0 {
		i := 0
		if v.fault == "serves the last first" {
			i = len(v.line) - 1
		}
		call := v.line[i]
		if v.inFlight+call.cost > v.limit && (v.fault != "starts one for each that ends" || v.inFlight >= v.cfg.MaxInFlight) {
			return
		}
		v.line = slices.Delete(v.line, i, i+1)
		v.start(call.cost)
		v.count(forebay.Accepted)
		call.decided <- forebay.Accepted
	}
}

func (v *rival) release(cost int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.giveBack(cost)
}

func (v *rival) giveBack(cost int) {
	if v.fault == "counts requests, not cost" {
		cost = 1
	}
	v.inFlight -= cost
	v.stats.Calls--
	v.stats.Released++
	v.dispatch()
	if v.idle != nil && v.stats.Calls == 0 {
		close(v.idle)
		v.idle = nil
	}
}

func (v *rival) count(d forebay.Decision) {
	n := map[forebay.Decision]*uint64{
		forebay.Accepted: &v.stats.Accepted, forebay.Canceled: &v.stats.Canceled,
		forebay.RejectedBusy: &v.stats.RejectedBusy, forebay.RejectedTimeout: &v.stats.RejectedTimeout,
		forebay.RejectedTooLarge: &v.stats.RejectedTooLarge, forebay.RejectedDraining: &v.stats.RejectedDraining,
	}[d]
	*n++
	if v.fault == "counts refusals twice" && d == forebay.RejectedBusy {
		*n++
	}
}

func (v *rival) setLimit(n int) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.limit = n
	if v.fault != "sleeps when the limit grows" {
		v.dispatch()
	}
	return nil
}

func (v *rival) drain(ctx context.Context) error {
	v.mu.Lock()
	v.draining = true
	if v.fault != "lets the line wait while it drains" {
		for _, call := range v.line {
			v.count(forebay.RejectedDraining)
			call.decided <- forebay.RejectedDraining
		}
		v.line = nil
	}
	if v.stats.Calls == 0 || v.fault == "does not wait for the running" {
		v.mu.Unlock()
		return nil
	}
	idle := make(chan struct{})
	v.idle = idle
	v.mu.Unlock()
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (v *rival) snapshot() []forebay.Stats {
	v.mu.Lock()
	defer v.mu.Unlock()
	st := v.stats
	st.Name, st.Capacity, st.InUse, st.Waiting = v.cfg.Name, v.limit, v.inFlight, len(v.line)
	return []forebay.Stats{st}
}

func (v *rival) refuse(w http.ResponseWriter, r *http.Request, d forebay.Decision) {
	if d == forebay.Canceled {
		return
	}
	if v.fault == "hangs up without an answer" {
		panic(http.ErrAbortHandler)
	}
	h := w.Header()
	id := r.Header.Get("X-Request-Id")
	harmless := len(id) > 0 && len(id) < 100 && !strings.ContainsFunc(id, func(c rune) bool {
		return !strings.ContainsRune("-._", c) && (c < '0' || c > 'z' || c > '9' && c < 'A' || c > 'Z' && c < 'a')
	})
	if !harmless && v.fault != "repeats every id" || v.fault == "repeats no id" {
		id = strconv.FormatUint(rand.Uint64(), 16)
	}
	h.Set("X-Request-Id", id)
	status := d.Status()
	if v.cfg.Refusal.Status != 0 && d != forebay.RejectedTooLarge && v.fault != "knows 503 only" {
		status = v.cfg.Refusal.Status
	}
	if d != forebay.RejectedTooLarge || v.fault == "tells the hopeless to come back" {
		h.Set("Retry-After", v.retryAfter(d))
	}
	if v.fault == "tells nobody when to come back" || v.fault == "tells only some when to come back" && d == forebay.RejectedTimeout {
		h.Del("Retry-After")
	}
	if d == forebay.RejectedDraining && v.fault != "keeps connections while it drains" {
		h.Set("Connection", "close")
	}
	if v.fault != "lets refusals be cached" {
		h.Set("Cache-Control", "no-store")
	}
	v.write(w, r, d, status, id)
}

func (v *rival) retryAfter(d forebay.Decision) string {
	bounds := v.cfg.Refusal.RetryAfter
	switch {
	case v.fault == "sends a fraction":
		return "3.5"
	case bounds.Min > 0 && v.fault != "ignores the bounds":
		return strconv.Itoa(int((bounds.Min + time.Second - 1) / time.Second))
	case v.fault == "sends everybody back at once":
		return "1"
	}
	return strconv.Itoa(1 + rand.IntN(3))
}

func (v *rival) write(w http.ResponseWriter, r *http.Request, d forebay.Decision, status int, id string) {
	h := w.Header()
	code, proxy := "server_busy", "connection_limit_reached"
	if d == forebay.RejectedTooLarge {
		code, proxy = "too_large", "http_request_denied"
	}
	h.Set("Proxy-Status", fmt.Sprintf(`forebay; error=%s; details="%s %s"`, proxy, v.cfg.Name, d))
	body := fmt.Sprintf(`{"error":"%s","reason":"%s","gate":"%s","requestId":"%s"}`, code, d, v.cfg.Name, id)
	h.Set("Content-Type", "application/json")
	if strings.Contains(r.Header.Get("Accept"), "problem+json") && v.fault != "knows no problem details" {
		h.Set("Content-Type", "application/problem+json")
		body = strings.Replace(body, "{", fmt.Sprintf(`{"status":%d,`, status), 1)
	}
	if strings.HasPrefix(r.Header.Get("Accept"), "text/html") && v.fault != "sends browsers JSON" {
		h.Set("Content-Type", "text/html; charset=utf-8")
		body = "<p>Please try again later</p>"
	}
	if v.fault == "answers in HTML" {
		body = "<h1>Too busy</h1>"
	}
	h.Set("Content-Length", strconv.Itoa(len(body)))
	if v.fault == "sends a body to HEAD" && r.Method == http.MethodHead {
		conn, buf, _ := http.NewResponseController(w).Hijack()
		defer conn.Close()
		fmt.Fprintf(buf, "HTTP/1.1 503 Service Unavailable\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
		_ = buf.Flush()
		return
	}
	w.WriteHeader(status)
	_, _ = io.WriteString(w, body)
}
