//go:build linux

package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
)

// options is what the command line says.
type options struct {
	only     *regexp.Regexp
	systems  string
	parallel int
	rounds   int
}

func run(args []string, out io.Writer) error {
	var o options
	only := ""
	f := flag.NewFlagSet("chaos", flag.ContinueOnError)
	f.StringVar(&only, "only", "", "scenarios whose name matches `REGEXP`")
	f.StringVar(&o.systems, "systems", ourselves, "what goes through them, separated by semicolons")
	f.IntVar(&o.parallel, "parallel", 2, "scenarios at a time")
	f.IntVar(&o.rounds, "rounds", 1, "how often each")
	if err := f.Parse(args); err != nil {
		return err
	}
	o.only = regexp.MustCompile(only)
	program, err := os.Executable()
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "chaos")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	var plays []play
	for _, name := range strings.Split(o.systems, ";") {
		c := contender{name: name, system: name, program: program}
		for range o.rounds {
			for _, s := range scenarios() {
				if o.only.MatchString(s.name) && (s.fits == nil || s.fits(c)) {
					plays = append(plays, play{s, c})
				}
			}
		}
	}
	wrong := 0
	for _, v := range playAll(plays, dir, o.parallel, out) {
		wrong += len(v.wrong())
	}
	if wrong > 0 {
		return fmt.Errorf("%d things are wrong", wrong)
	}
	return nil
}

// play is a scenario that a contender goes through.
type play struct {
	scenario
	contender
}

// playAll plays so many at a time, and those that need the machine for themselves
// after the others.
func playAll(plays []play, dir string, parallel int, out io.Writer) []*verdict {
	verdicts := make([]*verdict, len(plays))
	var mu sync.Mutex // guards out
	one := func(i int) {
		p := plays[i]
		sub := filepath.Join(dir, fmt.Sprint(i))
		v := p.play(sub)
		mu.Lock()
		defer mu.Unlock()
		fmt.Fprintln(out, v.line())
		for _, w := range v.wrong() {
			fmt.Fprintln(out, "    WRONG:", w)
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

func (p play) play(dir string) *verdict {
	v := &verdict{scenario: p.scenario.name, contender: p.contender.name}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		v.err = err
		return v
	}
	played, err := newStage(p.scenario, p.contender, dir).play()
	if played != nil {
		v = played
	}
	if errors.Is(err, errMissing) {
		v.skipped = err.Error()
		return v
	}
	v.err = err
	return v
}
