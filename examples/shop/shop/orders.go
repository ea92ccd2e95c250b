package shop

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"
)

var states = []string{"open", "packed", "sent", "sent", "sent", "returned"}

const (
	defaultPage = 50
	largestPage = 200
	mostLines   = 50
	largestBody = 64 << 10
)

type order struct {
	ID         int64    `json:"id"`
	PlacedOn   string   `json:"placed_on"`
	State      string   `json:"state"`
	Customer   customer `json:"customer"`
	TotalCents int64    `json:"total_cents"`
	Lines      []line   `json:"lines"`
}

type customer struct {
	ID      int64  `json:"id"`
	Name    string `json:"name"`
	Country string `json:"country"`
}

type line struct {
	ProductID  int64  `json:"product_id"`
	Product    string `json:"product"`
	Quantity   int64  `json:"quantity"`
	PriceCents int64  `json:"price_cents"`
}

type page struct {
	Orders []*order `json:"orders"`
	After  int64    `json:"next_after,omitempty"` // the key of the next page, if there may be one
}

// newOrder is what a caller sends.
type newOrder struct {
	CustomerID int64     `json:"customer_id"`
	Lines      []newLine `json:"lines"`
}

type newLine struct {
	ProductID int64 `json:"product_id"`
	Quantity  int64 `json:"quantity"`
}

func (s *Server) listOrders(w http.ResponseWriter, r *http.Request) {
	after, err := number(r, "after", 0, 0, 1<<53)
	if err != nil {
		fail(w, http.StatusBadRequest, err)
		return
	}
	limit, err := number(r, "limit", defaultPage, 1, largestPage)
	if err != nil {
		fail(w, http.StatusBadRequest, err)
		return
	}
	found, err := s.store.orders(r.Context(), `WHERE o.id > ? ORDER BY o.id LIMIT ?`, after, limit)
	if err != nil {
		broken(w, r, err)
		return
	}
	p := page{Orders: found}
	if int64(len(found)) == limit {
		p.After = found[len(found)-1].ID
	}
	answer(w, http.StatusOK, p)
}

func (s *Server) newestOrders(w http.ResponseWriter, r *http.Request) {
	found, err := s.store.orders(r.Context(), `ORDER BY o.id DESC LIMIT 10`)
	if err != nil {
		broken(w, r, err)
		return
	}
	answer(w, http.StatusOK, page{Orders: found})
}

func (s *Server) oneOrder(w http.ResponseWriter, r *http.Request) {
	id, err := strconv.ParseInt(r.PathValue("id"), 10, 64)
	if err != nil {
		fail(w, http.StatusBadRequest, fmt.Errorf("the id of an order is a number, not %q", r.PathValue("id")))
		return
	}
	found, err := s.store.orders(r.Context(), `WHERE o.id = ?`, id)
	switch {
	case err != nil:
		broken(w, r, err)
	case len(found) == 0:
		fail(w, http.StatusNotFound, fmt.Errorf("there is no order %d", id))
	default:
		answer(w, http.StatusOK, found[0])
	}
}

func (s *Server) createOrder(w http.ResponseWriter, r *http.Request) {
	var n newOrder
	d := json.NewDecoder(http.MaxBytesReader(w, r.Body, largestBody))
	d.DisallowUnknownFields()
	if err := d.Decode(&n); err != nil {
		fail(w, http.StatusBadRequest, fmt.Errorf("the body is not an order: %w", err))
		return
	}
	if err := n.validate(); err != nil {
		fail(w, http.StatusUnprocessableEntity, err)
		return
	}
	id, err := s.store.create(r.Context(), n, time.Now().UTC().Format(time.DateOnly))
	if err != nil {
		broken(w, r, err)
		return
	}
	if id == 0 {
		fail(w, http.StatusUnprocessableEntity, fmt.Errorf("the customer or a product does not exist"))
		return
	}
	w.Header().Set("Location", fmt.Sprintf("/api/orders/%d", id))
	answer(w, http.StatusCreated, map[string]int64{"id": id})
}

func (n *newOrder) validate() error {
	if len(n.Lines) < 1 || len(n.Lines) > mostLines {
		return fmt.Errorf("an order has 1 to %d lines, not %d", mostLines, len(n.Lines))
	}
	for i, l := range n.Lines {
		if l.Quantity < 1 || l.Quantity > 1000 {
			return fmt.Errorf("line %d: the quantity is 1 to 1000, not %d", i+1, l.Quantity)
		}
	}
	return nil
}

// orders returns the orders that match, with their lines: two queries, however
// many they are.
func (s *store) orders(ctx context.Context, match string, args ...any) ([]*order, error) {
	found, byID := []*order{}, map[int64]*order{}
	err := s.query(ctx, func(rows *sql.Rows) error {
		o := &order{Lines: []line{}}
		err := rows.Scan(&o.ID, &o.PlacedOn, &o.State, &o.Customer.ID, &o.Customer.Name, &o.Customer.Country)
		found, byID[o.ID] = append(found, o), o
		return err
	}, `SELECT o.id, o.placed_on, o.state, c.id, c.name, c.country
		FROM orders o JOIN customers c ON c.id = o.customer_id `+match, args...)
	if err != nil || len(found) == 0 {
		return found, err
	}
	ids := make([]int64, len(found))
	for i, o := range found {
		ids[i] = o.ID
	}
	return found, s.addLines(ctx, ids, byID)
}

// addLines fetches the lines of all orders at once. The keys travel as one JSON
// value, so that the text of the query is always the same.
func (s *store) addLines(ctx context.Context, ids []int64, byID map[int64]*order) error {
	keys, err := json.Marshal(ids)
	if err != nil {
		return err
	}
	return s.query(ctx, func(rows *sql.Rows) error {
		var id int64
		var l line
		if err := rows.Scan(&id, &l.ProductID, &l.Product, &l.Quantity, &l.PriceCents); err != nil {
			return err
		}
		o := byID[id]
		o.Lines = append(o.Lines, l)
		o.TotalCents += l.Quantity * l.PriceCents
		return nil
	}, `SELECT l.order_id, p.id, p.name, l.quantity, l.price_cents
		FROM json_each(?) k JOIN lines l ON l.order_id = k.value JOIN products p ON p.id = l.product_id
		ORDER BY l.order_id, l.no`, string(keys))
}

// create adds an order, and returns 0 when the customer or a product is unknown.
func (s *store) create(ctx context.Context, n newOrder, day string) (id int64, err error) {
	lines, err := json.Marshal(n.Lines)
	if err != nil {
		return 0, err
	}
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return 0, err
	}
	defer tx.Rollback()
	added, err := tx.ExecContext(ctx, `INSERT INTO orders (customer_id, placed_on, state)
		SELECT id, ?, 'open' FROM customers WHERE id = ?`, day, n.CustomerID)
	if err != nil {
		return 0, err
	}
	if count, err := added.RowsAffected(); err != nil || count == 0 {
		return 0, err
	}
	if id, err = added.LastInsertId(); err != nil {
		return 0, err
	}
	added, err = tx.ExecContext(ctx, `INSERT INTO lines (order_id, no, product_id, quantity, price_cents)
		SELECT ?, j.key + 1, p.id, j.value ->> 'quantity', p.price_cents
		FROM json_each(?) j JOIN products p ON p.id = j.value ->> 'product_id'`, id, string(lines))
	if err != nil {
		return 0, err
	}
	if count, err := added.RowsAffected(); err != nil || count != int64(len(n.Lines)) {
		return 0, err
	}
	return id, tx.Commit()
}
