package shop

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"time"
)

// DefaultPool is how many connections to the database a shop has unless told.
const DefaultPool = 20

// Options says what a shop is; its zero value is a shop with its data in the
// user's cache directory.
type Options struct {
	// Data is the directory of the database, made at first. Empty: [DefaultData].
	Data string
	// Pool is how many connections to the database are open at most. 0: [DefaultPool].
	Pool int
	// Hold is how much longer each query keeps its connection than it works, on average, as
	// if it waited for another service meanwhile. 0: no longer.
	Hold time.Duration
	// Progress is told how the making of the data goes. Nil: nobody is.
	Progress io.Writer

	orders int // how many are made; 0: as many as the constant
}

// Server is a shop with its database open. It is safe for concurrent use; its zero
// value is of no use, see [New]. Close it.
type Server struct {
	store                       *store
	mux                         *http.ServeMux
	all, orders, reports, admin traffic
}

// New opens a shop and makes its data first where there is none, which takes a few
// seconds.
func New(ctx context.Context, o Options) (*Server, error) {
	if o.Pool < 0 {
		return nil, fmt.Errorf("shop: Pool is %d; it must be at least 1", o.Pool)
	}
	if o.Hold < 0 {
		return nil, fmt.Errorf("shop: Hold is %v; it must be at least 0", o.Hold)
	}
	o.Pool = cmp.Or(o.Pool, DefaultPool)
	if o.Data == "" {
		o.Data = DefaultData()
	}
	if o.Progress == nil {
		o.Progress = io.Discard
	}
	dir, err := filepath.Abs(o.Data)
	if err != nil {
		return nil, fmt.Errorf("shop: %w", err)
	}
	s := &Server{mux: http.NewServeMux()}
	if s.store, err = openStore(ctx, dir, o.Pool, cmp.Or(o.orders, orders), o.Progress); err != nil {
		return nil, err
	}
	s.store.hold = o.Hold
	s.routes()
	return s, nil
}

// DefaultData is where the data is unless told: in the user's cache directory, or
// in that of temporary files where the user has none.
func DefaultData() string {
	dir, err := os.UserCacheDir()
	if err != nil {
		dir = os.TempDir()
	}
	return filepath.Join(dir, "forebay-shop")
}

func (s *Server) routes() {
	s.mux.Handle("GET /api/orders", counted(s.listOrders, &s.all, &s.orders))
	s.mux.Handle("POST /api/orders", counted(s.createOrder, &s.all, &s.orders))
	s.mux.Handle("GET /api/orders/{id}", counted(s.oneOrder, &s.all, &s.orders))
	s.mux.Handle("GET /reports/revenue", counted(s.revenue, &s.all, &s.reports))
	s.mux.Handle("GET /reports/top-customers", counted(s.topCustomers, &s.all, &s.reports))
	s.mux.Handle("GET /admin/newest-orders", counted(s.newestOrders, &s.all, &s.admin))
	s.mux.Handle("GET /admin/info", counted(s.info, &s.all, &s.admin))
	s.mux.HandleFunc("POST /admin/reset-peak", s.resetPeak)
	s.mux.HandleFunc("POST /admin/pool", s.setPool)
	s.mux.HandleFunc("GET /health", func(w http.ResponseWriter, r *http.Request) {
		answer(w, http.StatusOK, map[string]string{"status": "ok"})
	})
}

// Handler answers the requests.
func (s *Server) Handler() http.Handler { return s.mux }

// Close closes the database. Requests that still run fail.
func (s *Server) Close() error { return s.store.db.Close() }

// info tells how full the pool is and how many requests are inside. It needs no
// connection, so that it answers while there is none.
func (s *Server) info(w http.ResponseWriter, r *http.Request) {
	p := s.store.db.Stats()
	answer(w, http.StatusOK, map[string]any{
		"pool": map[string]any{
			"max_open": p.MaxOpenConnections, "open": p.OpenConnections, "in_use": p.InUse, "idle": p.Idle,
			"waits": p.WaitCount, "waited_ms": p.WaitDuration.Milliseconds(),
		},
		"requests": map[string]crowd{
			"all": s.all.crowd(), "orders": s.orders.crowd(), "reports": s.reports.crowd(), "admin": s.admin.crowd(),
		},
		"goroutines": runtime.NumGoroutine(),
	})
}

func (s *Server) resetPeak(w http.ResponseWriter, r *http.Request) {
	for _, t := range []*traffic{&s.all, &s.orders, &s.reports, &s.admin} {
		t.reset()
	}
	w.WriteHeader(http.StatusNoContent)
}

// setPool opens another number of connections at most. Those in use beyond it are closed
// when they are given back.
func (s *Server) setPool(w http.ResponseWriter, r *http.Request) {
	n, err := number(r, "size", 0, 1, 1000)
	if err == nil && n == 0 {
		err = errors.New("size is missing; write ?size=10")
	}
	if err != nil {
		fail(w, http.StatusBadRequest, err)
		return
	}
	s.store.db.SetMaxOpenConns(int(n))
	s.store.db.SetMaxIdleConns(int(n))
	w.WriteHeader(http.StatusNoContent)
}

// number reads a parameter of the query.
func number(r *http.Request, name string, otherwise, least, most int64) (int64, error) {
	text := r.URL.Query().Get(name)
	if text == "" {
		return otherwise, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < least || n > most {
		return 0, fmt.Errorf("%s is %q; it must be a number from %d to %d", name, text, least, most)
	}
	return n, nil
}

// answer writes a value in one piece.
func answer(w http.ResponseWriter, status int, v any) {
	body, err := json.Marshal(v)
	if err != nil {
		log.Printf("shop: encoding an answer: %v", err)
		http.Error(w, `{"error":"internal"}`, http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(body, '\n'))
}

// fail tells a caller what was wrong with its request.
func fail(w http.ResponseWriter, status int, err error) {
	answer(w, status, map[string]string{"error": err.Error()})
}

// broken answers a request that the database failed. A caller that has left gets
// nothing, and is no error of the shop.
func broken(w http.ResponseWriter, r *http.Request, err error) {
	if r.Context().Err() != nil || errors.Is(err, context.Canceled) {
		return
	}
	log.Printf("shop: %s %s: %v", r.Method, r.URL.Path, err)
	fail(w, http.StatusInternalServerError, errors.New("internal error"))
}
