package rivals

import (
	"context"
	"errors"
	"strconv"
	"time"
)

// tokenList is Frappe's concurrent_limit: a list with one element for each slot,
// which is filled by whoever finds that nobody has said how many there are. Callers
// pop an element and push it back.
type tokenList struct {
	client
	Config
	capacity string
}

// tokenListTTL is for how long Frappe's list is not filled anew.
const tokenListTTL = time.Hour

func newTokenList(conn client, c Config) Semaphore {
	return &tokenList{conn, c, c.Name + ":capacity"}
}

// Acquire asks whether there are tokens, and blocks until there is one.
func (t *tokenList) Acquire(ctx context.Context) (func(), error) {
	if err := t.fill(ctx); err != nil {
		return t.failed(ctx, err)
	}
	token, err := t.pop(ctx)
	switch {
	case errors.Is(err, errNil):
		return t.failed(ctx, ErrFull)
	case err != nil:
		return t.failed(ctx, err)
	}
	return func() { t.release(token) }, nil
}

// pop blocks for as long as the caller has. A time of 0 would be for ever: Frappe
// pops without blocking then, and has no other part of a second.
func (t *tokenList) pop(ctx context.Context) (string, error) {
	wait := t.MaxWait
	if deadline, ok := ctx.Deadline(); ok {
		wait = min(wait, time.Until(deadline))
	}
	if wait < time.Millisecond {
		return t.lpop(ctx, t.Name)
	}
	return t.blpop(ctx, t.Name, wait)
}

// fill makes the tokens if the capacity is not known, step by step as Frappe does.
func (t *tokenList) fill(ctx context.Context) error {
	known, err := t.exists(ctx, t.capacity)
	if known || err != nil {
		return err
	}
	if err := t.set(ctx, t.capacity, strconv.Itoa(t.Limit), t.leaseOr(tokenListTTL)); err != nil {
		return err
	}
	if err := t.del(ctx, t.Name); err != nil {
		return err
	}
	for i := range t.Limit {
		if err := t.lpush(ctx, t.Name, strconv.Itoa(i+1)); err != nil {
			return err
		}
	}
	return nil
}

func (t *tokenList) release(token string) {
	letGo(func(ctx context.Context) error { return t.lpush(ctx, t.Name, token) })
}

// Close drops the connections.
func (t *tokenList) Close() error { return t.close() }
