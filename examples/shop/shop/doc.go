// Package shop is a small JSON API over SQLite, of the kind that dies when too much
// arrives at once: pages of orders are cheap, reports are not, and both share one
// pool of connections and the same processors.
//
//	GET  /api/orders?after=ID&limit=N   a page by key, two queries whatever N is
//	POST /api/orders                    creates an order
//	GET  /api/orders/{id}
//	GET  /reports/revenue?month=2026-05
//	GET  /reports/top-customers?month=2026-05&limit=N   the quarter that ends with it
//	GET  /admin/info                    the pool, and what runs now and ran at most
//	GET  /admin/newest-orders
//	POST /admin/reset-peak
//	GET  /health
//
// Nothing in it sleeps or is slowed down on purpose. What makes it collapse is what
// makes other services collapse: it accepts every request, each takes memory and a
// goroutine and waits for a connection, the twenty that have one share the
// processors, and after two seconds the callers have left before their answer came.
//
// Work stops when the caller leaves, where a Go service usually stops: waiting for a
// connection ends, and a running query is interrupted. What was done until then is
// lost, and so is a connection whose query was interrupted: the driver closes it,
// and the pool opens another. Encoding an answer goes on to its end.
//
// A [Server] is safe for concurrent use.
package shop
