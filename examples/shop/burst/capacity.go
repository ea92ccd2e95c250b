package burst

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// Capacity measures what a backend carries: a few callers, each of which sends its
// next call when the last was answered, drawn from the classes by their rates. It
// returns the answers a second. Callers should be about as many as the backend has
// processors: more measure its queue as well.
func Capacity(ctx context.Context, base string, classes []Class, callers int, length time.Duration) (float64, error) {
	transport := newTransport(callers)
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var answers atomic.Int64
	var wg sync.WaitGroup
	begin := time.Now()
	for i := range callers {
		wg.Go(func() {
			rnd := rand.New(rand.NewPCG(uint64(i), 0))
			for time.Since(begin) < length && ctx.Err() == nil {
				if err := sendOne(ctx, client, base, draw(classes, rnd)); err != nil {
					cancel(err)
					return
				}
				answers.Add(1)
			}
		})
	}
	wg.Wait()
	return float64(answers.Load()) / time.Since(begin).Seconds(), context.Cause(ctx)
}

func sendOne(ctx context.Context, client *http.Client, base string, c Request) error {
	got, err := send(ctx, client, base, c)
	if err == nil && got.status >= http.StatusBadRequest {
		err = fmt.Errorf("%s answered %d", c.Path, got.status)
	}
	if err != nil {
		return fmt.Errorf("burst: measuring the capacity: %w", err)
	}
	return nil
}

// draw picks a class by its rate, and a call of it.
func draw(classes []Class, rnd *rand.Rand) Request {
	total := 0.0
	for _, c := range classes {
		total += c.Rate
	}
	at := rnd.Float64() * total
	for _, c := range classes {
		if at -= c.Rate; at < 0 {
			return c.Next(rnd)
		}
	}
	return classes[0].Next(rnd) // rounding
}
