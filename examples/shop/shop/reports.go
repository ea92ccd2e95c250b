package shop

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"
)

const (
	monthForm  = "2006-01"
	defaultTop = 20
	largestTop = 500
)

type revenueRow struct {
	Day          string `json:"day"`
	Category     string `json:"category"`
	Orders       int64  `json:"orders"`
	Items        int64  `json:"items"`
	RevenueCents int64  `json:"revenue_cents"`
}

type customerRow struct {
	Customer     customer `json:"customer"`
	Orders       int64    `json:"orders"`
	Items        int64    `json:"items"`
	RevenueCents int64    `json:"revenue_cents"`
}

// revenue answers what each category sold on each day of a month.
func (s *Server) revenue(w http.ResponseWriter, r *http.Request) {
	month, err := monthOf(r)
	if err != nil {
		fail(w, http.StatusBadRequest, err)
		return
	}
	rows, err := s.store.revenue(r.Context(), month, month.AddDate(0, 1, 0))
	if err != nil {
		broken(w, r, err)
		return
	}
	stream(w, month, rows)
}

// topCustomers answers who bought most in the three months that end with one.
func (s *Server) topCustomers(w http.ResponseWriter, r *http.Request) {
	month, err := monthOf(r)
	if err != nil {
		fail(w, http.StatusBadRequest, err)
		return
	}
	limit, err := number(r, "limit", defaultTop, 1, largestTop)
	if err != nil {
		fail(w, http.StatusBadRequest, err)
		return
	}
	rows, err := s.store.topCustomers(r.Context(), month.AddDate(0, -2, 0), month.AddDate(0, 1, 0), limit)
	if err != nil {
		broken(w, r, err)
		return
	}
	stream(w, month, rows)
}

func (s *store) revenue(ctx context.Context, from, to time.Time) (found []revenueRow, err error) {
	err = s.query(ctx, func(rows *sql.Rows) error {
		var v revenueRow
		err := rows.Scan(&v.Day, &v.Category, &v.Orders, &v.Items, &v.RevenueCents)
		found = append(found, v)
		return err
	}, `SELECT o.placed_on, p.category, COUNT(DISTINCT o.id), SUM(l.quantity), SUM(l.quantity * l.price_cents)
		FROM orders o JOIN lines l ON l.order_id = o.id JOIN products p ON p.id = l.product_id
		WHERE o.placed_on >= ? AND o.placed_on < ?
		GROUP BY o.placed_on, p.category ORDER BY o.placed_on, p.category`,
		from.Format(time.DateOnly), to.Format(time.DateOnly))
	return found, err
}

func (s *store) topCustomers(ctx context.Context, from, to time.Time, limit int64) (found []customerRow, err error) {
	err = s.query(ctx, func(rows *sql.Rows) error {
		var v customerRow
		err := rows.Scan(&v.Customer.ID, &v.Customer.Name, &v.Customer.Country, &v.Orders, &v.Items, &v.RevenueCents)
		found = append(found, v)
		return err
	}, `SELECT c.id, c.name, c.country, t.orders, t.items, t.revenue
		FROM (SELECT o.customer_id, COUNT(DISTINCT o.id) AS orders, SUM(l.quantity) AS items, SUM(l.quantity * l.price_cents) AS revenue
			FROM orders o JOIN lines l ON l.order_id = o.id
			WHERE o.placed_on >= ? AND o.placed_on < ? GROUP BY o.customer_id) t
		JOIN customers c ON c.id = t.customer_id
		ORDER BY t.revenue DESC, c.id LIMIT ?`,
		from.Format(time.DateOnly), to.Format(time.DateOnly), limit)
	return found, err
}

// stream writes the rows one by one. The connection is back in the pool by now: a
// slow reader of a report does not keep it from others.
func stream[R any](w http.ResponseWriter, month time.Time, rows []R) {
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"month":%q,"rows":[`, month.Format(monthForm))
	e := json.NewEncoder(w)
	for i := range rows {
		if i > 0 {
			_, _ = io.WriteString(w, ",")
		}
		if e.Encode(&rows[i]) != nil {
			return // the reader is gone; nothing can be told to it
		}
	}
	_, _ = io.WriteString(w, "]}\n")
}

func monthOf(r *http.Request) (time.Time, error) {
	text := r.URL.Query().Get("month")
	if text == "" {
		return lastMonth, nil
	}
	month, err := time.Parse(monthForm, text)
	if err != nil {
		return month, fmt.Errorf("month is %q; it must be like %s", text, lastMonth.Format(monthForm))
	}
	return month, nil
}
