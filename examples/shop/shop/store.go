package shop

import (
	"context"
	"database/sql"
	"fmt"
	"io"
	"math/rand/v2"
	"net/url"
	"os"
	"path/filepath"
	"time"

	// Of the SQLite drivers without C, this one has been at version 1 for years, is
	// released every few weeks with the current SQLite, follows the context of a
	// query, and runs on every platform that Forebay is checked for, 32 bits too.
	// ncruces/go-sqlite3 is maintained as well, but still at version 0, and gives each
	// connection a linear memory of its own; zombiezen's has not been released for
	// more than a year and is not a database/sql driver.
	_ "modernc.org/sqlite"
)

// store is the database behind the pool.
type store struct {
	db   *sql.DB
	hold time.Duration // beyond the query itself
}

// openStore opens the database in a directory, and makes it at first.
func openStore(ctx context.Context, dir string, pool, orders int, progress io.Writer) (*store, error) {
	file := filepath.Join(dir, dataFile)
	if _, err := os.Stat(file); err != nil {
		if err := makeData(ctx, dir, orders, progress); err != nil {
			return nil, fmt.Errorf("shop: making the data in %s: %w", dir, err)
		}
	}
	db, err := sql.Open("sqlite", sourceName(file,
		"journal_mode(wal)",   // readers and the one writer do not wait for each other
		"synchronous(normal)", // a crash of the machine may lose the last orders, and breaks nothing
		"busy_timeout(5000)",  // how long a writer waits for the writer before it
		"foreign_keys(on)",    // an order has a customer
		"temp_store(memory)",  // groups of a report are sorted here
		"cache_size(-8000)"))  // KiB a connection: the whole of the data
	if err != nil {
		return nil, fmt.Errorf("shop: opening %s: %w", file, err)
	}
	db.SetMaxOpenConns(pool)
	db.SetMaxIdleConns(pool) // the default of 2 would open and close them all the time
	if err := db.PingContext(ctx); err != nil {
		_ = db.Close()
		return nil, fmt.Errorf("shop: opening %s: %w", file, err)
	}
	return &store{db: db}, nil
}

// sourceName is what the driver opens: a file with the settings of each connection.
// Transactions take the write lock when they begin; one that read first would
// have to be thrown away when another has written meanwhile.
func sourceName(file string, pragmas ...string) string {
	q := url.Values{"_pragma": pragmas, "_txlock": {"immediate"}}
	u := url.URL{Scheme: "file", Path: filepath.ToSlash(file), RawQuery: q.Encode()}
	if filepath.VolumeName(file) != "" {
		u.Path = "/" + u.Path // file:///C:/…
	}
	return u.String()
}

// query runs a query and gives each row to scan. When it returns, the connection
// is back in the pool.
func (s *store) query(ctx context.Context, scan func(*sql.Rows) error, text string, args ...any) error {
	rows, err := s.db.QueryContext(ctx, text, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	s.wait(ctx) // before the last row, which gives the connection back
	for rows.Next() {
		if err := scan(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// wait holds the connection for as long as something else in the same transaction would
// take: from half of hold to one and a half, at random.
func (s *store) wait(ctx context.Context) {
	if s.hold <= 0 {
		return
	}
	select {
	case <-time.After(s.hold/2 + rand.N(s.hold)):
	case <-ctx.Done():
	}
}
