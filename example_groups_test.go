package forebay_test

import (
	"fmt"
	"log"
	"net/http"
	"strings"

	"example.com/forebay"
)

// Groups of routes: reports and orders have a gate each, an export passes both,
// and health is never gated. The most specific pattern wins, in whatever order
// the routes stand; the route "/" leaves no request without a gate.
func ExampleGroups() {
	reports := mustGate(forebay.Config{Name: "reports", MaxInFlight: 4})
	orders := mustGate(forebay.Config{Name: "orders", MaxInFlight: 12})
	groups, err := forebay.NewGroups(forebay.GroupsConfig{Routes: []forebay.Route{
		{Match: "/health", Exempt: true},
		{Match: "GET /reports/", Gates: []*forebay.Gate{reports}},
		{Match: "GET /export/", Gates: []*forebay.Gate{orders, reports}}, // a chain, in this order
		{Match: "/", Gates: []*forebay.Gate{orders}},
	}})
	if err != nil {
		log.Fatal(err)
	}
	handler := groups.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "%s: reports %d, orders %d\n", r.URL.Path, reports.Stats().InUse, orders.Stats().InUse)
	}))

	for _, path := range []string{"/health", "/reports/7", "/export/7", "/orders/7"} {
		fmt.Print(get(handler, path))
	}
	// Output:
	// 200 /health: reports 0, orders 0
	// 200 /reports/7: reports 1, orders 0
	// 200 /export/7: reports 1, orders 1
	// 200 /orders/7: reports 0, orders 1
}

// While the reports are full, only the routes of their gate are refused.
func ExampleGroups_Wrap() {
	reports := mustGate(forebay.Config{Name: "reports", MaxInFlight: 1})
	groups, err := forebay.NewGroups(forebay.GroupsConfig{Routes: []forebay.Route{
		{Match: "GET /reports/{day}", Gates: []*forebay.Gate{reports}},
	}})
	if err != nil {
		log.Fatal(err)
	}
	mux := http.NewServeMux() // it routes as before: the groups stand in front
	mux.HandleFunc("GET /reports/{day}", report)
	mux.Handle("GET /health", forebay.NewHealth(reports))
	handler := groups.Wrap(mux)

	lease, _ := reports.TryAcquire(forebay.Call{}) // full
	fmt.Println(code(handler, "/reports/monday"), code(handler, "/health"))
	lease.Release()
	fmt.Println(code(handler, "/reports/monday"), code(handler, "/health"))
	// Output:
	// 503 200
	// 200 200
}

// Every mistake is reported at once, each on its own line.
func ExampleNewGroups() {
	reports := mustGate(forebay.Config{Name: "reports", MaxInFlight: 4})
	_, err := forebay.NewGroups(forebay.GroupsConfig{Routes: []forebay.Route{
		{Match: "get /reports/", Gates: []*forebay.Gate{reports}}, // methods are upper case
		{Match: "/orders/"}, // neither gates nor Exempt
	}})
	fmt.Println(strings.Count(err.Error(), "\n")+1, "mistakes")
	// Output:
	// 2 mistakes
}
