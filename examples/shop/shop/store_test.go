package shop

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// The same file, byte for byte, and the rows that it always had.
func TestDataIsTheSame(t *testing.T) {
	var sums [2][sha256.Size]byte
	for i := range sums {
		var told strings.Builder
		dir := filepath.Join(t.TempDir(), "with space & %")
		if err := makeData(t.Context(), dir, testOrders, &told); err != nil {
			t.Fatal(err)
		}
		file, err := os.ReadFile(filepath.Join(dir, dataFile))
		if err != nil {
			t.Fatal(err)
		}
		sums[i] = sha256.Sum256(file)
		if n := strings.Count(told.String(), "%\n"); n != steps {
			t.Errorf("%d words of progress:\n%s", n, told.String())
		}
		if left, _ := os.ReadDir(dir); len(left) != 1 {
			t.Errorf("it left %v", left)
		}
	}
	if sums[0] != sums[1] {
		t.Error("made twice, the files differ")
	}
	var got string
	err := open(t, 0).store.query(t.Context(), func(rows *sql.Rows) error { return rows.Scan(&got) },
		`SELECT count(*) || ' ' || sum(quantity * price_cents) || ' ' || sum(product_id * no) FROM lines WHERE order_id <= ?`, testOrders)
	if want := "8062 161064818 7272969"; err != nil || got != want {
		t.Errorf("lines, revenue, sum = %s, %v, want %s; a change of the data needs another name of the file", got, err, want)
	}
}

func TestStoppedMakingLeavesNothing(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	dir := t.TempDir()
	err := makeData(ctx, dir, testOrders, writer(func() { cancel() }))
	if left, _ := os.ReadDir(dir); !errors.Is(err, context.Canceled) || len(left) > 0 {
		t.Errorf("%v, and it left %v", err, left)
	}
}

type writer func()

func (w writer) Write(p []byte) (int, error) { w(); return len(p), nil }

// A page of 200 orders takes as many queries as one of a single order.
func TestNoQueryPerOrder(t *testing.T) {
	s := open(t, 1)
	counting := &countingDriver{Driver: s.store.db.Driver()}
	s.store = &store{db: sql.OpenDB(connector{counting, sourceName(filepath.Join(testData, dataFile))})}
	defer s.store.db.Close()
	for _, limit := range []int{1, 200} {
		counting.queries.Store(0)
		w := ask(s.Handler(), "GET", fmt.Sprintf("/api/orders?limit=%d", limit), "")
		if n := counting.queries.Load(); w.Code != 200 || n != 2 {
			t.Errorf("limit %d: status %d, %d queries, want 2", limit, w.Code, n)
		}
	}
}

type countingDriver struct {
	driver.Driver
	queries atomic.Int64
}

type connector struct {
	driver *countingDriver
	name   string
}

func (c connector) Driver() driver.Driver { return c.driver }
func (c connector) Connect(context.Context) (driver.Conn, error) {
	conn, err := c.driver.Open(c.name)
	return countingConn{conn, c.driver}, err
}

type countingConn struct {
	driver.Conn
	driver *countingDriver
}

func (c countingConn) QueryContext(ctx context.Context, q string, args []driver.NamedValue) (driver.Rows, error) {
	c.driver.queries.Add(1)
	return c.Conn.(driver.QueryerContext).QueryContext(ctx, q, args)
}

// While an answer is written no connection is taken.
func TestConnectionIsBackBeforeTheAnswer(t *testing.T) {
	s := open(t, 1)
	for _, path := range []string{"/reports/revenue", "/reports/top-customers", "/api/orders"} {
		w := &watchfulWriter{ResponseRecorder: httptest.NewRecorder(), inUse: func() int { return s.store.db.Stats().InUse }}
		s.Handler().ServeHTTP(w, httptest.NewRequest("GET", path, nil))
		if w.Code != http.StatusOK || w.writes == 0 || w.most > 0 {
			t.Errorf("%s: status %d, %d writes, %d connections in use", path, w.Code, w.writes, w.most)
		}
	}
}

type watchfulWriter struct {
	*httptest.ResponseRecorder
	inUse        func() int
	writes, most int
}

func (w *watchfulWriter) Write(p []byte) (int, error) {
	w.writes++
	w.most = max(w.most, w.inUse())
	return w.ResponseRecorder.Write(p)
}

// Who leaves while waiting for a connection waits no longer, and gets nothing.
func TestLeavingWhileWaitingForAConnection(t *testing.T) {
	s := open(t, 1)
	taken, err := s.store.db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for _, path := range []string{"/reports/revenue", "/api/orders", "/api/orders/1"} {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		w := httptest.NewRecorder()
		s.Handler().ServeHTTP(w, httptest.NewRequestWithContext(ctx, "GET", path, nil))
		cancel()
		if w.Body.Len() > 0 {
			t.Errorf("%s: %s", path, w.Body)
		}
	}
	if w := ask(s.Handler(), "GET", "/admin/info", ""); w.Code != http.StatusOK {
		t.Errorf("info without a connection: %d", w.Code)
	}
}

// A running query is interrupted, and the pool is as before.
func TestRunningQueryIsInterrupted(t *testing.T) {
	s := open(t, 1)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer cancel()
	err := s.store.query(ctx, func(*sql.Rows) error { return nil },
		`WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT sum(i) FROM n`)
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("err = %v, want that of the context", err)
	}
	if w := ask(s.Handler(), "GET", "/api/orders/1", ""); w.Code != http.StatusOK || s.store.db.Stats().InUse != 0 {
		t.Errorf("afterwards: %d, %+v", w.Code, s.store.db.Stats())
	}
}

func TestBrokenDatabase(t *testing.T) {
	s, err := New(t.Context(), Options{Data: testData, orders: testOrders})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/reports/revenue", "/reports/top-customers", "/api/orders", "/api/orders/1", "/admin/newest-orders"} {
		if w := ask(s.Handler(), "GET", path, ""); w.Code != http.StatusInternalServerError || strings.Contains(w.Body.String(), "sql") {
			t.Errorf("%s: %d %s; want 500 and nothing of the inside", path, w.Code, w.Body)
		}
	}
}
