package telemetry

import (
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"example.com/forebay"
)

// TestTM06: five requests of one second on one slot. What callers see, what they
// waited and what the work took are three numbers, and the first is the sum of the
// others.
func TestTM06_WaitingIsMeasuredApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, _ := open(t, Options{})
		m := NewMetrics(l)
		g, err := forebay.New(forebay.Config{
			Name: "reports", MaxInFlight: 1, MaxWait: time.Minute, MaxWaiting: 10, Track: true, Observers: []forebay.Observer{m.Gates},
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := m.Gates.Watch(g); err != nil {
			t.Fatal(err)
		}
		work := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { time.Sleep(time.Second) })
		h := m.Requests.Wrap(g.Wrap(work), reports)
		var wg sync.WaitGroup
		for range 5 {
			wg.Go(func() { h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/reports/7", nil)) })
		}
		wg.Wait()
		families, err := m.registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		sums := map[string]float64{}
		for _, f := range families {
			for _, s := range f.Metric {
				sums[f.GetName()] += s.GetHistogram().GetSampleSum()
			}
		}
		for name, want := range map[string]float64{
			"forebay_wait_seconds":                 0 + 1 + 2 + 3 + 4,
			"forebay_hold_seconds":                 5,
			"http_server_request_duration_seconds": 15,
		} {
			if sums[name] != want {
				t.Errorf("%s sums to %v s, want %v", name, sums[name], want)
			}
		}
		mustClose(t, l)
	})
}
