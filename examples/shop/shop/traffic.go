package shop

import (
	"net/http"
	"sync/atomic"
)

// traffic counts the requests of a group that are inside at once.
type traffic struct {
	inFlight, peak atomic.Int64
}

func (t *traffic) enter() {
	n := t.inFlight.Add(1)
	for p := t.peak.Load(); n > p && !t.peak.CompareAndSwap(p, n); p = t.peak.Load() {
	}
}

func (t *traffic) leave() { t.inFlight.Add(-1) }

// reset forgets the peak, except what is inside.
func (t *traffic) reset() { t.peak.Store(t.inFlight.Load()) }

// crowd is what runs now and ran at most since the start or the last reset.
type crowd struct {
	InFlight int64 `json:"in_flight"`
	Peak     int64 `json:"peak"`
}

func (t *traffic) crowd() crowd { return crowd{InFlight: t.inFlight.Load(), Peak: t.peak.Load()} }

// counted counts the requests that a handler has, in its group and in all.
func counted(h http.HandlerFunc, in ...*traffic) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for _, t := range in {
			t.enter()
			defer t.leave()
		}
		h(w, r)
	})
}
