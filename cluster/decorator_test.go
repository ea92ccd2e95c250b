package cluster_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"example.com/forebay"
	"example.com/forebay/cluster"
	"example.com/forebay/forebaytest"
)

// TestDecoratorOverProcesses: a function behind Func is @concurrent_limit(2, 10 ms) over
// all processes: a third request gets a 503 that says when to come back, work outside
// requests needs no slot, and each process can say what runs in all of them.
func TestDecoratorOverProcesses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := forebaytest.NewStore(1)
		var gates [2]*forebay.Gates
		for i := range gates {
			shared, err := cluster.New(cluster.Config{Store: store.Path()})
			if err != nil {
				t.Fatal(err)
			}
			defer shared.Close(context.Background())
			gates[i], err = forebay.NewGates(forebay.Config{
				Name: "reports", MaxInFlight: 2, MaxWait: 10 * time.Millisecond, OnlyInRequests: true, Cluster: shared,
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		request := context.WithValue(context.Background(), http.ServerContextKey, &http.Server{})
		release := make(chan struct{})
		report := func(ctx context.Context, process int, wait bool) (string, error) {
			return forebay.Func(gates[process].Get("reports"), func(_ context.Context, wait bool) (string, error) {
				if wait {
					<-release
				}
				return "report", nil
			})(ctx, wait)
		}

		var running sync.WaitGroup
		for process := range gates {
			running.Go(func() {
				if _, err := report(request, process, true); err != nil {
					t.Errorf("process %d: %v", process, err)
				}
			})
		}
		time.Sleep(time.Second)
		began := time.Now()
		_, err := report(request, 1, false)
		if took := time.Since(began); err == nil || took != 10*time.Millisecond {
			t.Errorf("a third report: %v after %v", err, took)
		}
		w := httptest.NewRecorder()
		forebay.Refuse(w, httptest.NewRequest(http.MethodGet, "/report", nil), err)
		if w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") == "" {
			t.Errorf("its answer is %d with Retry-After %q", w.Code, w.Header().Get("Retry-After"))
		}
		if got, err := report(context.Background(), 1, false); got != "report" || err != nil {
			t.Errorf("outside requests: %q, %v", got, err)
		}
		for process := range gates {
			if st, ok := gates[process].Stats("reports"); !ok || st.Capacity != 2 || st.Available != 0 || st.InUse != 2 || st.Local.InUse != 1 {
				t.Errorf("process %d says %+v, here %+v", process, st, st.Local)
			}
		}
		close(release)
		running.Wait()
	})
}
