package burst

import (
	"fmt"
	"math/rand/v2"
)

// What the data of the shop has; a test of the shop sends these calls and fails if
// one is not answered.
const (
	shopOrders    = 50_000
	shopCustomers = 2_000
	shopProducts  = 600
	shopPage      = 25
)

var shopMonths = []string{"2025-11", "2025-12", "2026-01", "2026-02", "2026-03", "2026-04", "2026-05", "2026-06"}

// Shop returns the classes of the sample shop for a rate in all: 80 % orders, 18 %
// reports, 2 % admin.
func Shop(rate float64) []Class {
	return []Class{
		{Name: "orders", Rate: 0.80 * rate, Next: orderCall},
		{Name: "reports", Rate: 0.18 * rate, Next: reportCall},
		{Name: "admin", Rate: 0.02 * rate, Next: adminCall},
	}
}

// orderCall is mostly a page, now and then a single order or a new one.
func orderCall(r *rand.Rand) Request {
	switch kind := r.IntN(20); {
	case kind < 15:
		return Request{Path: fmt.Sprintf("/api/orders?after=%d&limit=%d", r.IntN(shopOrders-shopPage), shopPage)}
	case kind < 19:
		return Request{Path: fmt.Sprintf("/api/orders/%d", 1+r.IntN(shopOrders))}
	}
	return Request{Method: "POST", Path: "/api/orders", Body: fmt.Sprintf(
		`{"customer_id":%d,"lines":[{"product_id":%d,"quantity":%d},{"product_id":%d,"quantity":1}]}`,
		1+r.IntN(shopCustomers), 1+r.IntN(shopProducts), 1+r.IntN(9), 1+r.IntN(shopProducts))}
}

func reportCall(r *rand.Rand) Request {
	month := shopMonths[r.IntN(len(shopMonths))]
	if r.IntN(2) == 0 {
		return Request{Path: "/reports/revenue?month=" + month}
	}
	return Request{Path: "/reports/top-customers?month=" + month}
}

func adminCall(r *rand.Rand) Request {
	if r.IntN(2) == 0 {
		return Request{Path: "/admin/info"}
	}
	return Request{Path: "/admin/newest-orders"}
}
