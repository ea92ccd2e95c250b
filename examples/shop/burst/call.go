package burst

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// call sends one call, counts its end, and returns it if it is to come back.
func (r *run) call(ctx context.Context, a arrival) *arrival {
	due, patience := r.start.Add(a.due), r.Classes[a.class].Deadline
	limited, cancel := context.WithDeadline(ctx, due.Add(patience))
	defer cancel()
	answer, err := send(limited, r.client, r.URL, a.Request)
	took := time.Since(due)
	switch {
	case err != nil && ctx.Err() != nil: // the whole run was stopped
		return nil
	case errors.Is(err, context.DeadlineExceeded), err == nil && took > patience:
		r.tally.late(a)
	case err != nil:
		r.tally.failed(a, err.Error())
	case answer.refused():
		r.tally.refused(a, took)
		if r.HonourRetryAfter && !a.again {
			a.due, a.again = time.Since(r.start)+answer.retryAfter, true
			return &a
		}
	case answer.status >= http.StatusBadRequest:
		r.tally.failed(a, fmt.Sprintf("%s answered %d", a.Path, answer.status))
	default:
		r.tally.inTime(a, took)
	}
	return nil
}

// answer is what matters of one.
type answer struct {
	status     int
	retryAfter time.Duration // 0: none
}

// refused tells a refusal from a failure: whoever refuses says when to come back.
func (a answer) refused() bool {
	return a.retryAfter > 0 && (a.status == http.StatusServiceUnavailable || a.status == http.StatusTooManyRequests)
}

// send sends a call and reads the whole answer.
func send(ctx context.Context, client *http.Client, base string, c Request) (answer, error) {
	var body io.Reader
	if c.Body != "" {
		body = strings.NewReader(c.Body)
	}
	req, err := http.NewRequestWithContext(ctx, c.Method, base+c.Path, body)
	if err != nil {
		return answer{}, err
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := client.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		return answer{}, err
	}
	seconds, err := strconv.Atoi(resp.Header.Get("Retry-After"))
	if err != nil {
		seconds = 0 // a date, or nothing: no backend here sends dates
	}
	return answer{status: resp.StatusCode, retryAfter: time.Duration(seconds) * time.Second}, nil
}
