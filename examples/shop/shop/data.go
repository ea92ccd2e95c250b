package shop

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"
)

// The amount of made data. The same seed gives the same file, byte for byte.
const (
	dataFile  = "shop-1.db" // the number goes up when the data or the tables change
	dataSeed  = 20260701
	customers = 2_000
	products  = 600
	orders    = 50_000 // less only in tests
	linesEach = 7      // an order has 1 to 7 lines, 4 on average: 200,000 in all
	months    = 10
	steps     = 10 // words of progress
)

var (
	firstDay   = time.Date(2025, 9, 1, 0, 0, 0, 0, time.UTC)
	lastMonth  = firstDay.AddDate(0, months-1, 0)
	countries  = []string{"AT", "BE", "CH", "CZ", "DE", "DK", "ES", "FI", "FR", "GB", "IE", "IT", "NL", "NO", "PL", "PT", "SE"}
	categories = []string{"bakery", "books", "cleaning", "coffee", "dairy", "drinks", "frozen", "fruit", "garden", "kitchen", "office", "spices", "toys", "wine"}
)

const tables = `
CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT NOT NULL, country TEXT NOT NULL);
CREATE TABLE products (id INTEGER PRIMARY KEY, name TEXT NOT NULL, category TEXT NOT NULL, price_cents INTEGER NOT NULL);
CREATE TABLE orders (id INTEGER PRIMARY KEY, customer_id INTEGER NOT NULL REFERENCES customers, placed_on TEXT NOT NULL, state TEXT NOT NULL);
CREATE TABLE lines (order_id INTEGER NOT NULL REFERENCES orders, no INTEGER NOT NULL, product_id INTEGER NOT NULL REFERENCES products,
	quantity INTEGER NOT NULL, price_cents INTEGER NOT NULL, PRIMARY KEY (order_id, no)) WITHOUT ROWID;`

// The index comes when the rows are there, which is faster; analyze tells the
// planner how many there are.
const index = `CREATE INDEX orders_placed_on ON orders (placed_on); ANALYZE;`

// makeData makes the database beside its place and moves it there when it is
// complete: whoever is stopped in between, or runs at the same time, leaves no half
// of one.
func makeData(ctx context.Context, dir string, orders int, progress io.Writer) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	draft, err := os.MkdirTemp(dir, "making-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(draft)
	begin, file := time.Now(), filepath.Join(draft, dataFile)
	fmt.Fprintf(progress, "shop: making %d orders in %s, once\n", orders, dir)
	if err := fill(ctx, file, orders, progress); err != nil {
		return err
	}
	place := filepath.Join(dir, dataFile)
	if _, err := os.Stat(place); err == nil {
		return nil // another shop was faster, and uses it already
	}
	// The log of a database that somebody has deleted would be played into this one.
	for _, old := range []string{place + "-wal", place + "-shm"} {
		if err := os.Remove(old); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	if err := os.Rename(file, place); err != nil {
		return err
	}
	fmt.Fprintf(progress, "shop: made in %v\n", time.Since(begin).Round(100*time.Millisecond))
	return nil
}

// fill writes all rows in one transaction, without a journal: the file is thrown
// away if anything fails.
func fill(ctx context.Context, file string, orders int, progress io.Writer) error {
	db, err := sql.Open("sqlite", sourceName(file, "journal_mode(off)", "synchronous(off)"))
	if err != nil {
		return err
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if _, err := tx.ExecContext(ctx, tables); err != nil {
		return err
	}
	m := maker{ctx: ctx, tx: tx, rnd: rand.New(rand.NewPCG(dataSeed, 1)), prices: make([]int, products+1)}
	if err := errors.Join(m.makeCustomers(), m.makeProducts(), m.makeOrders(orders, progress)); err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, index); err != nil {
		return err
	}
	return errors.Join(tx.Commit(), db.Close())
}

// maker draws the rows. The order of its draws is part of the data.
type maker struct {
	ctx    context.Context
	tx     *sql.Tx
	rnd    *rand.Rand
	prices []int // by product
}

func (m *maker) makeCustomers() error {
	insert, err := m.tx.PrepareContext(m.ctx, `INSERT INTO customers VALUES (?, ?, ?)`)
	if err != nil {
		return err
	}
	defer insert.Close()
	for id := 1; id <= customers; id++ {
		name := fmt.Sprintf("Customer %04d", id)
		if _, err := insert.ExecContext(m.ctx, id, name, m.one(countries)); err != nil {
			return err
		}
	}
	return nil
}

func (m *maker) makeProducts() error {
	insert, err := m.tx.PrepareContext(m.ctx, `INSERT INTO products VALUES (?, ?, ?, ?)`)
	if err != nil {
		return err
	}
	defer insert.Close()
	for id := 1; id <= products; id++ {
		category := m.one(categories)
		m.prices[id] = 99 + 10*m.rnd.IntN(800)
		if _, err := insert.ExecContext(m.ctx, id, fmt.Sprintf("%s %03d", category, id), category, m.prices[id]); err != nil {
			return err
		}
	}
	return nil
}

func (m *maker) makeOrders(orders int, progress io.Writer) error {
	order, err := m.tx.PrepareContext(m.ctx, `INSERT INTO orders VALUES (?, ?, ?, ?)`)
	if err != nil {
		return err
	}
	defer order.Close()
	line, err := m.tx.PrepareContext(m.ctx, `INSERT INTO lines VALUES (?, ?, ?, ?, ?)`)
	if err != nil {
		return err
	}
	defer line.Close()
	// Few customers buy much, as everywhere.
	buyer := rand.NewZipf(m.rnd, 1.1, 20, customers-1)
	days := int(firstDay.AddDate(0, months, 0).Sub(firstDay).Hours() / 24)
	for id := 1; id <= orders; id++ {
		day := firstDay.AddDate(0, 0, (id-1)*days/orders)
		if _, err := order.ExecContext(m.ctx, id, buyer.Uint64()+1, day.Format(time.DateOnly), m.one(states)); err != nil {
			return err
		}
		for no := range 1 + m.rnd.IntN(linesEach) {
			product := 1 + m.rnd.IntN(products)
			if _, err := line.ExecContext(m.ctx, id, no+1, product, 1+m.rnd.IntN(9), m.prices[product]); err != nil {
				return err
			}
		}
		if id%(orders/steps) == 0 {
			fmt.Fprintf(progress, "shop: %3d %%\n", 100*id/orders)
		}
	}
	return nil
}

func (m *maker) one(of []string) string { return of[m.rnd.IntN(len(of))] }
