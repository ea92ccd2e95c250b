//go:build linux

package main

import "time"

// report is everything that was played.
type report struct {
	began    time.Time
	took     time.Duration
	verdicts []*verdict
}

// wrong counts the runs of forebay that showed what they must not, or did not show
// what they must.
func (r *report) wrong() (n int) {
	for _, v := range r.verdicts {
		if v.ours() && len(v.wrong()) > 0 {
			n++
		}
	}
	return n
}

func (r *report) save(path string) error { return nil }
