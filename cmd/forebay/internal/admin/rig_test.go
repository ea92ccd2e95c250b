package admin

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"example.com/forebay"
	"example.com/forebay/cmd/forebay/internal/proxy"
	"example.com/forebay/cmd/forebay/internal/story"
	"example.com/forebay/cmd/forebay/internal/verdict"
)

// fakeProgram is a program of gates only.
type fakeProgram struct {
	mu        sync.Mutex // guards what follows
	gates     []*forebay.Gate
	overrides []Override
	draining  bool
	reloadErr error
	setErr    error
	reloads   int
	away      map[string]string
	book      *story.Book
	seen      *verdict.Recorder
	autos     map[string]*Auto
}

func newGate(t *testing.T, c forebay.Config) *forebay.Gate {
	t.Helper()
	c.Track = true
	if c.MaxInFlight == 0 {
		c.MaxInFlight = 2
	}
	g, err := forebay.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func program(t *testing.T, names ...string) *fakeProgram {
	t.Helper()
	p := &fakeProgram{book: story.NewBook()}
	for _, name := range names {
		p.gates = append(p.gates, newGate(t, forebay.Config{Name: name}))
	}
	return p
}

func (p *fakeProgram) Gates() []*forebay.Gate {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.gates)
}

func (p *fakeProgram) Reload(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.reloads++
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return p.reloadErr
}

func (p *fakeProgram) setDraining(on bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.draining = on
}

func (p *fakeProgram) Seen() *verdict.Recorder {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.seen == nil {
		p.seen = verdict.NewRecorder()
		p.seen.Watch(p.gates...)
	}
	return p.seen
}

func (p *fakeProgram) Stories() *story.Book {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.book == nil {
		p.book = story.NewBook()
	}
	return p.book
}

func (p *fakeProgram) Drain()  { p.setDraining(true) }
func (p *fakeProgram) Resume() { p.setDraining(false) }

func (p *fakeProgram) Draining() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.draining
}

func (p *fakeProgram) Info() Info {
	return Info{Version: "v1.2.3", ConfigPath: "forebay.yaml", ConfigHash: "ab12", LastReloadOK: true}
}

func (p *fakeProgram) Intake() forebay.IntakeStats {
	return forebay.IntakeStats{Bytes: forebay.BytesStats{Limit: 64, Held: 7}, Slow: 3}
}

func (p *fakeProgram) Spool() proxy.SpoolStats {
	return proxy.SpoolStats{Answers: 3, Kept: 2, Errors: 1}
}

func (p *fakeProgram) Away(gate string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.away[gate]
}

func (p *fakeProgram) gate(name string) *forebay.Gate {
	for _, g := range p.gates {
		if g.Name() == name {
			return g
		}
	}
	return nil
}

func (p *fakeProgram) SetOverride(gate string, n int, d time.Duration, of Reason) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.setErr != nil {
		return p.setErr
	}
	g := p.gate(gate)
	o := Override{Gate: gate, MaxInFlight: n, Was: g.Stats().Capacity, Since: time.Unix(1000, 0).UTC(), Why: of.Why, By: of.By}
	if d > 0 {
		o.Until = o.Since.Add(d)
	}
	p.overrides = append(p.overrides, o)
	return g.SetLimit(n)
}

func (p *fakeProgram) ClearOverride(gate string, _ Reason) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.overrides = slices.DeleteFunc(p.overrides, func(o Override) bool { return o.Gate == gate })
	g := p.gate(gate)
	return g.SetLimit(g.Config().MaxInFlight)
}

func (p *fakeProgram) Auto(g *forebay.Gate) *Auto { return p.autos[g.Name()] }

func (p *fakeProgram) Overrides() []Override {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.overrides)
}

// local is what a program on loopback without a token is served with.
var local = Options{Loopback: true, Anonymise: func(ip string) string { return "anon:" + ip }}

func metricsHandler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "forebay_limit 2\n") })
}

// ask sends one request: "METHOD /path", a body, and headers as "Name: value".
func ask(h http.Handler, what, body string, headers ...string) *httptest.ResponseRecorder {
	method, target, _ := strings.Cut(what, " ")
	r := httptest.NewRequest(method, target, strings.NewReader(body))
	r.Host = "localhost:8081"
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for _, line := range headers {
		name, value, _ := strings.Cut(line, ": ")
		if name == "Host" {
			r.Host = value
			continue
		}
		r.Header.Set(name, value)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// decoded reads a JSON answer of the status that is wanted.
func decoded[T any](t *testing.T, w *httptest.ResponseRecorder, status int) T {
	t.Helper()
	var v T
	if w.Code != status {
		t.Fatalf("status = %d, want %d: %s", w.Code, status, w.Body)
	}
	if got := w.Header().Get("Content-Type"); got != "application/json" {
		t.Errorf("content type = %q", got)
	}
	if got := w.Header().Get("Cache-Control"); got != "no-store" {
		t.Errorf("cache control = %q", got)
	}
	dec := json.NewDecoder(strings.NewReader(w.Body.String()))
	if err := dec.Decode(&v); err != nil {
		t.Fatalf("%s: %v", w.Body, err)
	}
	if !strings.HasSuffix(w.Body.String(), "}\n") {
		t.Errorf("%q is not one object and a newline", w.Body)
	}
	return v
}

func hold(t *testing.T, g *forebay.Gate, id string) forebay.Lease {
	t.Helper()
	lease, err := g.Acquire(context.Background(), forebay.Call{Route: "GET /reports/", RequestID: id, RemoteIP: "192.0.2.77"})
	if err != nil {
		t.Fatal(err)
	}
	return lease
}

func refuse(t *testing.T, g *forebay.Gate) {
	t.Helper()
	if _, err := g.Acquire(context.Background(), forebay.Call{}); err == nil {
		t.Fatal("admitted")
	}
}

func wantString(t *testing.T, what, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%s = %q, want %q", what, got, want)
	}
}

func text(v any) string { return fmt.Sprint(v) }
