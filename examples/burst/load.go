package main

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"
)

const (
	// callers bounds goroutines and sockets. A call that finds none free fails, as
	// in a client whose connections are used up.
	callers = 512
	step    = 250 * time.Millisecond // what one sign of the picture shows
)

// tally is what became of the calls of one run.
type tally struct {
	calm, length time.Duration // quiet, and in all
	start        time.Time
	most         int64 // calls that the backend had inside at once
	sent, unsent int   // unsent: no caller was free

	mu       sync.Mutex      // guards what follows
	inTime   []int           // useful answers, by step
	answers  []time.Duration // how long all answers took, late ones too
	refusals []time.Duration
	late     int // answered too late, or not at all
}

func newTally(length time.Duration) *tally {
	return &tally{calm: length * 3 / 8, length: length, start: time.Now(), inTime: make([]int, (length+patience)/step+1)}
}

// call sends calls by the clock, whether or not earlier ones were answered, and
// prints a line each second.
func (t *tally) call(url string, b *backend) {
	transport := &http.Transport{MaxIdleConnsPerHost: callers}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport}
	free := make(chan struct{}, callers)
	var wg sync.WaitGroup
	due, told := 0.0, time.Duration(0)
	for last := time.Duration(0); last < t.length; time.Sleep(time.Millisecond) {
		now := time.Since(t.start)
		for due += (now - last).Seconds() * t.load(now) * capacity; due >= 1; due-- {
			select {
			case free <- struct{}{}:
				t.sent++
				wg.Go(func() {
					t.one(client, url)
					<-free
				})
			default:
				t.unsent++
			}
		}
		if last = now; now-told >= time.Second {
			t.progress(told, b)
			told += time.Second
		}
	}
	time.Sleep(patience) // who is not answered by then waits for nothing
	close(b.over)
	wg.Wait()
}

// load is how many times its capacity the backend is offered.
func (t *tally) load(at time.Duration) float64 {
	if at < t.calm {
		return quiet
	}
	return crowded
}

func (t *tally) one(client *http.Client, url string) {
	begin, status := time.Now(), 0
	if answer, err := client.Get(url); err == nil {
		_, _ = io.Copy(io.Discard, answer.Body) // so that the connection can be used again
		answer.Body.Close()
		status = answer.StatusCode
	}
	now := time.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	took := now.Sub(begin)
	if status == http.StatusServiceUnavailable {
		t.refusals = append(t.refusals, took)
		return
	}
	if status == http.StatusOK {
		t.answers = append(t.answers, took)
	}
	if status == http.StatusOK && took <= patience {
		t.inTime[min(int(now.Sub(t.start)/step), len(t.inTime)-1)]++
	} else {
		t.late++
	}
}

// progress prints what the second from then on was like.
func (t *tally) progress(from time.Duration, b *backend) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := t.between(from, from+time.Second)
	bar := strings.Repeat("#", min(24, n*20/int(capacity)))
	fmt.Printf("   %3v  %3gx  %4d useful answers  %-24s  %5d refused so far, %3d in the backend\n",
		from+time.Second, t.load(from), n, bar, len(t.refusals), b.inside.Load())
}

// between counts the useful answers of a part of the run.
func (t *tally) between(from, to time.Duration) (n int) {
	for _, answers := range t.inTime[from/step : to/step] {
		n += answers
	}
	return n
}
