//go:build linux

package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// play is a scenario that a contender goes through.
type play struct {
	scenario
	contender
	waves   bool     // the load comes in waves, so that at times the limit is not reached
	removal *removal // what the contender is without; nil: nothing
}

// waveLength is how long the load swells, and then ebbs.
const waveLength = 400 * time.Millisecond

// playAll plays so many at a time, and those that need the machine for themselves
// after the others.
func playAll(plays []play, dir string, parallel int, out io.Writer) []*verdict {
	verdicts := make([]*verdict, len(plays))
	var mu sync.Mutex // guards out
	one := func(i int) {
		v := plays[i].perform(filepath.Join(dir, fmt.Sprint(i)))
		mu.Lock()
		defer mu.Unlock()
		fmt.Fprintln(out, v.line())
		if v.ours() {
			for _, w := range v.wrong() {
				fmt.Fprintln(out, "    WRONG:", w)
			}
		}
		verdicts[i] = v
	}
	turns := make(chan bool, parallel)
	var all sync.WaitGroup
	for i, p := range plays {
		if !p.alone {
			turns <- true
			all.Go(func() { one(i); <-turns })
		}
	}
	all.Wait()
	for i, p := range plays {
		if p.alone {
			one(i)
		}
	}
	return verdicts
}

// perform plays it in a directory of its own.
func (p play) perform(dir string) *verdict {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return &verdict{play: p, err: err}
	}
	v, err := newStage(p, dir).run()
	if v == nil {
		v = &verdict{play: p}
	}
	if errors.Is(err, errMissing) {
		v.skipped = err.Error()
		return v
	}
	v.err = err
	return v
}
