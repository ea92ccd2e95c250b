package simulate

import (
	"testing"
	"time"

	"example.com/forebay/internal/admit"
)

func shop(load float64, gates ...string) *Scenario {
	return &Scenario{
		Name: "shop", For: time.Minute, WarmUp: 10 * time.Second, Seed: 1,
		Resources: []Resource{{Name: "db", Servers: 0, Sigma: .02, Kappa: .0006}},
		Gates:     []Gate{{Name: "orders", Config: admit.Config{Limit: 40, MaxWait: 100 * time.Millisecond, Measure: true}}},
		Routes:    []Route{{Name: "orders", Gates: gates, Work: []Visit{{"db", Exponential(50 * time.Millisecond)}}}},
		Clients:   []Client{{Name: "shop", Route: "orders", Deadline: time.Second, Arrivals: Arrivals{Rate: load * 293}}},
	}
}

func TestTry(t *testing.T) {
	for _, load := range []float64{.5, 1, 1.2, 2, 5, 10} {
		for _, gates := range [][]string{nil, {"orders"}} {
			r, err := Run(shop(load, gates...), nil)
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%v %v: %d of %d, goodput %.3f, wasted %v busy %+v\n%+v\n%+v", load, gates, r.Answered, r.Calls, r.Goodput, r.Wasted, r.Resources, r.Clients[0], r.Gates)
		}
	}
}

func BenchmarkRun(b *testing.B) {
	sc := shop(1, "orders")
	sc.Clients[0].Arrivals.Rate, sc.For = 3000, time.Duration(float64(time.Second)*float64(b.N)/3000)+time.Second
	sc.WarmUp = 0
	b.ReportAllocs()
	b.ResetTimer()
	if _, err := Run(sc, nil); err != nil {
		b.Fatal(err)
	}
}
