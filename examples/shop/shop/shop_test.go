package shop

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"example.com/forebay/examples/shop/burst"
)

var testData string // made once for all tests

// testOrders are enough for every test. All of them would take the race detector
// minutes.
const testOrders = 2000

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "shop-test-")
	if err != nil {
		panic(err)
	}
	testData = dir
	code := m.Run()
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

func open(t *testing.T, pool int) *Server {
	t.Helper()
	s, err := New(t.Context(), Options{Data: testData, Pool: pool, orders: testOrders})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func ask(h http.Handler, method, path, body string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(method, path, strings.NewReader(body)))
	return w
}

func decode[T any](t *testing.T, w *httptest.ResponseRecorder) (v T) {
	t.Helper()
	if err := json.Unmarshal(w.Body.Bytes(), &v); err != nil {
		t.Fatalf("status %d: %v in %s", w.Code, err, w.Body)
	}
	return v
}

// A walk by key over the whole of the first pages sees each order once.
func TestPages(t *testing.T) {
	s := open(t, 0)
	first := decode[page](t, ask(s.Handler(), "GET", "/api/orders?limit=3", ""))
	if len(first.Orders) != 3 || first.Orders[0].ID != 1 || first.After != 3 {
		t.Fatalf("first page: %+v", first)
	}
	second := decode[page](t, ask(s.Handler(), "GET", "/api/orders?after=3&limit=200", ""))
	if len(second.Orders) != 200 || second.Orders[0].ID != 4 || second.After != 203 {
		t.Errorf("second page: %d orders, then %d", len(second.Orders), second.After)
	}
	for _, o := range append(first.Orders, second.Orders...) {
		total := int64(0)
		for _, l := range o.Lines {
			total += l.Quantity * l.PriceCents
		}
		if len(o.Lines) == 0 || total != o.TotalCents || o.Customer.Name == "" || o.Lines[0].Product == "" {
			t.Errorf("order %d: %+v", o.ID, o)
		}
	}
	last := ask(s.Handler(), "GET", "/api/orders?after=99999999", "").Body.String()
	if last != `{"orders":[]}`+"\n" {
		t.Errorf("behind the last: %s", last)
	}
}

func TestCreatedOrderIsThere(t *testing.T) {
	s := open(t, 0)
	w := ask(s.Handler(), "POST", "/api/orders", `{"customer_id":5,"lines":[{"product_id":3,"quantity":2},{"product_id":4,"quantity":1}]}`)
	if w.Code != http.StatusCreated {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	o := decode[order](t, ask(s.Handler(), "GET", w.Header().Get("Location"), ""))
	if o.Customer.ID != 5 || len(o.Lines) != 2 || o.Lines[0].ProductID != 3 || o.Lines[0].Quantity != 2 || o.State != "open" {
		t.Errorf("%+v", o)
	}
	newest := decode[page](t, ask(s.Handler(), "GET", "/admin/newest-orders", ""))
	if newest.Orders[0].ID != o.ID || len(newest.Orders) != 10 {
		t.Errorf("newest: %d of %d", newest.Orders[0].ID, len(newest.Orders))
	}
}

func TestMistakesOfCallers(t *testing.T) {
	s := open(t, 0)
	for _, c := range []struct {
		method, path, body string
		status             int
	}{
		{"GET", "/api/orders?limit=0", "", 400},
		{"GET", "/api/orders?limit=201", "", 400},
		{"GET", "/api/orders?after=x", "", 400},
		{"GET", "/api/orders/x", "", 400},
		{"GET", "/api/orders/99999999", "", 404},
		{"GET", "/reports/revenue?month=May", "", 400},
		{"GET", "/reports/top-customers?limit=x", "", 400},
		{"GET", "/nothing", "", 404},
		{"DELETE", "/api/orders", "", 405},
		{"POST", "/api/orders", "{", 400},
		{"POST", "/api/orders", `{"paid":true}`, 400},
		{"POST", "/api/orders", `{"customer_id":1,"lines":[]}`, 422},
		{"POST", "/api/orders", `{"customer_id":1,"lines":[{"product_id":1,"quantity":0}]}`, 422},
		{"POST", "/api/orders", `{"customer_id":0,"lines":[{"product_id":1,"quantity":1}]}`, 422},
		{"POST", "/api/orders", `{"customer_id":1,"lines":[{"product_id":1,"quantity":1},{"product_id":0,"quantity":1}]}`, 422},
		{"POST", "/api/orders", strings.Repeat(" ", largestBody) + "{}", 400},
	} {
		if w := ask(s.Handler(), c.method, c.path, c.body); w.Code != c.status {
			t.Errorf("%s %s %.40s: %d %s, want %d", c.method, c.path, c.body, w.Code, w.Body, c.status)
		}
	}
	w := ask(s.Handler(), "GET", "/api/orders?after=99999998", "")
	if got := decode[page](t, w); len(got.Orders) != 0 {
		t.Errorf("a refused order is there: %+v", got)
	}
}

func TestReports(t *testing.T) {
	s := open(t, 0)
	type report[R any] struct {
		Month string `json:"month"`
		Rows  []R    `json:"rows"`
	}
	revenue := decode[report[revenueRow]](t, ask(s.Handler(), "GET", "/reports/revenue?month=2026-02", ""))
	if len(revenue.Rows) < 14*len(categories) || len(revenue.Rows) > 28*len(categories) || revenue.Rows[0].Day != "2026-02-01" || revenue.Rows[0].RevenueCents <= 0 {
		t.Errorf("revenue of February: %d rows, the first %+v", len(revenue.Rows), revenue.Rows[0])
	}
	top := decode[report[customerRow]](t, ask(s.Handler(), "GET", "/reports/top-customers?limit=30", ""))
	if top.Month != "2026-06" || len(top.Rows) != 30 || top.Rows[0].RevenueCents < top.Rows[29].RevenueCents {
		t.Errorf("top customers: %s, %d rows", top.Month, len(top.Rows))
	}
	if none := ask(s.Handler(), "GET", "/reports/revenue?month=1999-01", "").Body.String(); none != `{"month":"1999-01","rows":[]}`+"\n" {
		t.Errorf("a month without orders: %s", none)
	}
}

// What package burst sends fits the data.
func TestBurstIsAnswered(t *testing.T) {
	s := open(t, 0)
	rnd := rand.New(rand.NewPCG(1, 1))
	for _, c := range burst.Shop(1) {
		for range 40 {
			r := c.Next(rnd)
			if r.Method == "" {
				r.Method = "GET"
			}
			w := ask(s.Handler(), r.Method, r.Path, r.Body)
			switch known, ok := firstOrder(t, r); {
			case ok && known > orders:
				t.Errorf("%+v: there are %d orders", r, orders)
			case ok && known > testOrders: // beyond what this test has
			case w.Code >= 300 || strings.Contains(w.Body.String(), `:[]`):
				t.Errorf("%+v: %d %.200s", r, w.Code, w.Body)
			}
		}
	}
}

// firstOrder is the first order that a call asks for by number.
func firstOrder(t *testing.T, r burst.Request) (id int, ok bool) {
	t.Helper()
	for _, form := range []string{"/api/orders/%d", "/api/orders?after=%d"} {
		if n, err := fmt.Sscanf(r.Path, form, &id); n == 1 && err == nil {
			return id + 1, true
		}
	}
	return 0, false
}

func TestInfoCountsWhatIsInside(t *testing.T) {
	s := open(t, 7)
	type info struct {
		Pool struct {
			MaxOpen int `json:"max_open"`
		} `json:"pool"`
		Requests map[string]crowd `json:"requests"`
	}
	inside, leave := make(chan struct{}), make(chan struct{})
	h := counted(func(http.ResponseWriter, *http.Request) { inside <- struct{}{}; <-leave }, &s.all, &s.orders)
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() { ask(h, "GET", "/", "") })
		<-inside
	}
	got := decode[info](t, ask(s.Handler(), "GET", "/admin/info", ""))
	if got.Pool.MaxOpen != 7 || got.Requests["orders"] != (crowd{3, 3}) || got.Requests["all"] != (crowd{4, 4}) || got.Requests["reports"] != (crowd{}) {
		t.Errorf("with 3 inside: %+v", got)
	}
	close(leave)
	wg.Wait()
	if got := s.orders.crowd(); got != (crowd{0, 3}) {
		t.Errorf("afterwards: %+v", got)
	}
	if w := ask(s.Handler(), "POST", "/admin/reset-peak", ""); w.Code != http.StatusNoContent || s.orders.crowd() != (crowd{}) {
		t.Errorf("after the reset: %d, %+v", w.Code, s.orders.crowd())
	}
	if w := ask(s.Handler(), "GET", "/health", ""); w.Code != http.StatusOK || w.Body.String() != "{\"status\":\"ok\"}\n" {
		t.Errorf("health: %d %s", w.Code, w.Body)
	}
}

func TestWrongOptions(t *testing.T) {
	if _, err := New(t.Context(), Options{Data: testData, Pool: -1}); err == nil || !strings.Contains(err.Error(), "Pool is -1") {
		t.Errorf("Pool -1: %v", err)
	}
	file := t.TempDir() + "/file"
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := New(t.Context(), Options{Data: file, Progress: io.Discard}); err == nil {
		t.Error("a file as the directory of the data: no error")
	}
}

// TestPoolCanBeResized: it has another size from then on, and a bad one is refused.
func TestPoolCanBeResized(t *testing.T) {
	s := open(t, 2)
	s.store.hold = time.Millisecond
	for _, bad := range []string{"", "?size=0", "?size=x"} {
		if w := ask(s.Handler(), "POST", "/admin/pool"+bad, ""); w.Code != http.StatusBadRequest {
			t.Errorf("%q: status %d", bad, w.Code)
		}
	}
	if w := ask(s.Handler(), "POST", "/admin/pool?size=1", ""); w.Code != http.StatusNoContent || s.store.db.Stats().MaxOpenConnections != 1 {
		t.Errorf("status %d, %d connections at most", w.Code, s.store.db.Stats().MaxOpenConnections)
	}
	if w := ask(s.Handler(), "GET", "/api/orders/1", ""); w.Code != http.StatusOK {
		t.Errorf("status %d of an order with a hold", w.Code)
	}
	if _, err := New(t.Context(), Options{Data: testData, Hold: -1, orders: testOrders}); err == nil || !strings.Contains(err.Error(), "Hold is -1ns") {
		t.Errorf("a hold below 0: %v", err)
	}
}

// TestHoldKeepsTheConnection: a query that holds has its connection all the while.
func TestHoldKeepsTheConnection(t *testing.T) {
	s := open(t, 1)
	s.store.hold = time.Hour
	ctx, cancel := context.WithCancel(t.Context())
	order := func(ctx context.Context) {
		s.Handler().ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(ctx, "GET", "/api/orders/1", nil))
	}
	var first sync.WaitGroup
	first.Go(func() { order(ctx) })
	for range 5000 {
		if s.store.db.Stats().InUse > 0 {
			break
		}
		time.Sleep(time.Millisecond)
	}
	impatient, stop := context.WithTimeout(t.Context(), 50*time.Millisecond)
	order(impatient) // waits for the connection, or is wrong and has it by now
	stop()
	if n := s.store.db.Stats().InUse; n != 1 {
		t.Errorf("%d connections are in use while one order holds", n)
	}
	cancel()
	first.Wait()
}
