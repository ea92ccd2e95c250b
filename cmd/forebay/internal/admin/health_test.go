package admin

import (
	"context"
	"errors"
	"net/http/httptest"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"example.com/forebay"
)

func healthOf(t *testing.T, h *Health, status int) string {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest("GET", "/status", nil))
	return decoded[statusOnly](t, w, status).Status
}

func TestHealthIsDegradedForAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := program(t, "reports", "orders")
		h := Handler(p, metricsHandler(), local)
		status := func() string {
			return decoded[forebay.Report](t, ask(h, "GET /health", ""), 200).Status
		}
		time.Sleep(time.Second)
		wantString(t, "at first", status(), "ok")
		hold(t, p.gates[1], "a")
		hold(t, p.gates[1], "b")
		refuse(t, p.gates[1])
		got := decoded[forebay.Report](t, ask(h, "GET /health", ""), 200)
		want := []forebay.GateHealth{{Name: "reports", Status: "ok"}, {Name: "orders", Status: "degraded"}}
		if got.Status != "degraded" || !slices.Equal(got.Gates, want) {
			t.Errorf("report = %+v", got)
		}
		time.Sleep(29 * time.Second)
		wantString(t, "after 29 s", status(), "degraded")
		time.Sleep(2 * time.Second)
		wantString(t, "after 31 s", status(), "ok")
	})
}

// A reload that adds and removes gates does not call a degraded one well.
func TestHealthOutlivesAReload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := program(t, "reports", "orders")
		h := NewHealth(p)
		hold(t, p.gates[1], "a")
		hold(t, p.gates[1], "b")
		time.Sleep(time.Second)
		refuse(t, p.gates[1])
		wantString(t, "refusing", healthOf(t, h, 200), "degraded")
		time.Sleep(20 * time.Second)
		p.mu.Lock()
		p.gates = []*forebay.Gate{p.gates[1], newGate(t, forebay.Config{Name: "new"})}
		p.mu.Unlock()
		wantString(t, "after the reload", healthOf(t, h, 200), "degraded")
		p.mu.Lock()
		p.gates = p.gates[1:]
		p.mu.Unlock()
		wantString(t, "without the gate", healthOf(t, h, 200), "ok")
		if len(h.gates) != 1 {
			t.Errorf("%d gates are kept, want 1", len(h.gates))
		}
		p.Drain()
		wantString(t, "draining", healthOf(t, h, 503), "draining")
	})
}

// KR-11: while every slot and the line are full, each page of the admin port answers
// at once; nothing of it passes a gate.
func TestKR11_AdminAnswersWhileAllIsFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(t, forebay.Config{Name: "reports", MaxWait: time.Minute, MaxWaiting: 4})
		p := &fakeProgram{gates: []*forebay.Gate{g}}
		h := Handler(p, metricsHandler(), local)
		hold(t, g, "a")
		hold(t, g, "b")
		for range 4 {
			go func() {
				if _, err := g.Acquire(t.Context(), forebay.Call{}); !errors.Is(err, context.Canceled) {
					t.Errorf("a waiting call ended as %v", err)
				}
			}()
		}
		synctest.Wait()
		refuse(t, g)
		began := time.Now()
		for _, what := range everything[:10] {
			if w := ask(h, what, ""); w.Code != 200 {
				t.Errorf("%s: %d", what, w.Code)
			}
		}
		if d := time.Since(began); d != 0 { // virtual: any wait at all would show
			t.Errorf("the answers took %v", d)
		}
		if st := g.Stats(); st.Waiting != 4 || st.InUse != 2 || st.Decisions() != 3 {
			t.Errorf("the admin port shows in the gate: %+v", st)
		}
	})
}

// KR-12: readiness does not follow the load, whatever the load is.
func TestKR12_ReadyDoesNotFollowTheLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := program(t, "reports")
		h := Handler(p, metricsHandler(), local)
		hold(t, p.gates[0], "a")
		hold(t, p.gates[0], "b")
		for range 120 {
			refuse(t, p.gates[0])
			wantString(t, "ready", decoded[statusOnly](t, ask(h, "GET /ready", ""), 200).Status, "ready")
			decoded[forebay.Report](t, ask(h, "GET /health", ""), 200)
			time.Sleep(time.Second)
		}
		if err := p.gates[0].SetLimit(0); err != nil { // closed is not draining
			t.Fatal(err)
		}
		decoded[statusOnly](t, ask(h, "GET /ready", ""), 200)
	})
}
