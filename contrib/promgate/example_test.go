package promgate_test

import (
	"context"
	"fmt"
	"log"
	"net/http/httptest"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"example.com/forebay"
	"example.com/forebay/contrib/promgate"
)

// One gate, observed and watched, and what Prometheus then reads.
func Example() {
	m := promgate.New(promgate.Config{})
	g, err := forebay.New(forebay.Config{
		Name: "reports", MaxInFlight: 1,
		Observers: []forebay.Observer{m},
	})
	if err != nil {
		log.Fatal(err)
	}
	if err := m.Watch(g); err != nil {
		log.Fatal(err)
	}
	registry := prometheus.NewRegistry() // most programs use prometheus.MustRegister
	registry.MustRegister(m)

	call := forebay.Call{Route: "GET /reports/"}
	lease, err := g.Acquire(context.Background(), call)
	if err != nil {
		log.Fatal(err)
	}
	_, err = g.Acquire(context.Background(), call)
	fmt.Println(err)
	defer lease.Release()

	w := httptest.NewRecorder()
	promhttp.HandlerFor(registry, promhttp.HandlerOpts{}).ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	for line := range strings.Lines(w.Body.String()) {
		if strings.HasPrefix(line, "forebay_decisions_total") && !strings.HasSuffix(line, " 0\n") ||
			strings.HasPrefix(line, "forebay_in_flight{") || strings.HasPrefix(line, "forebay_limit{") {
			fmt.Print(line)
		}
	}
	// Output:
	// forebay: gate "reports": rejected_busy
	// forebay_decisions_total{decision="accepted",gate="reports",lane="",route="GET /reports/"} 1
	// forebay_decisions_total{decision="rejected_busy",gate="reports",lane="",route="GET /reports/"} 1
	// forebay_in_flight{gate="reports"} 1
	// forebay_limit{gate="reports"} 1
}
