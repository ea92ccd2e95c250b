// Command control compares limits that find themselves: ours, the laws that others
// publish, fixed numbers, and the modules that a Go program could use instead, on the
// same calls in simulated time. It writes docs/control-performance.md.
//
//	go run ./control           # everything, in about ten minutes on two cores
//	go run ./control --short   # what CI runs; writes nothing
//	go run ./control --strict  # exit status 1 if a pass line is missed
//	go run ./control --real    # the program before the shop, on the wall clock
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// main runs the program inside a test, as bubbles of testing/synctest want one around
// them.
func main() {
	args := os.Args[1:]
	os.Args = os.Args[:1] // the rest is not the test's
	everything := func(string, string) (bool, error) { return true, nil }
	testing.Main(everything, []testing.InternalTest{{Name: "control", F: func(t *testing.T) {
		bubbles = t
		if err := run(args, os.Stdout); err != nil {
			if !errors.Is(err, flag.ErrHelp) {
				fmt.Fprintln(os.Stderr, "control: error:", err)
			}
			os.Exit(1)
		}
		os.Exit(0)
	}}}, nil, nil)
}

var errMissed = errors.New("a pass line is missed")

func run(args []string, out io.Writer) error {
	flags := flag.NewFlagSet("control", flag.ContinueOnError)
	short := flags.Bool("short", false, "what CI runs, in half a minute")
	seeds := flags.Int("seeds", 5, "play everything with this many `seeds`")
	strict := flags.Bool("strict", false, "exit with status 1 if a pass line is missed")
	file := flags.String("out", filepath.Join("..", "docs", "control-performance.md"), "write the document to this `file`, unless --short")
	wall := flags.Bool("real", false, "the program before the shop, on this machine's clock, in ten minutes")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *wall {
		rows, err := playLoopback(context.Background(), []float64{1, 2, 5, 10}, []string{"8", "12", "16", "24", "40"}, realLegs{4 * time.Second, 6 * time.Second}, os.Stderr)
		if err != nil {
			return err
		}
		if err := judgeLoopback(rows, out); err != nil && *strict {
			return err
		}
		return nil
	}
	if *seeds < 1 || *seeds > 100 {
		return fmt.Errorf("--seeds is %d; it must be from 1 to 100", *seeds)
	}
	p := wholePlan(*seeds)
	if *short {
		p = shortPlan()
	}
	began := time.Now()
	r, err := p.play(os.Stderr)
	if err != nil {
		return err
	}
	if *short {
		r.lines(out)
	} else {
		r.write(out, false)
		if err := r.save(*file); err != nil {
			return err
		}
		fmt.Fprintln(out, "\nwritten to", *file)
	}
	fmt.Fprintf(os.Stderr, "%s: %.0f s, %d of %d pass lines are missed\n", p.name, time.Since(began).Seconds(), r.missed(), len(lines()))
	if *strict && r.missed() > 0 {
		return errMissed
	}
	return nil
}

// play runs the whole plan.
func (p *plan) play(progress io.Writer) (*report, error) {
	r := &report{plan: p}
	contenders := simulated
	if p.alone {
		contenders = simulated[:2]
	}
	var err error
	if r.simulated, err = playAll(p.trials, contenders, p, progress); err != nil {
		return nil, err
	}
	oracle := simulated[1]
	if r.real, err = playAll(p.real, append(slices.Clone(real), oracle), p, progress); err != nil {
		return nil, err
	}
	if p.unseen {
		r.newcomers, err = playUnseen(p.seeds)
	}
	return r, err
}

func playAll(trials []*trial, contenders []contender, p *plan, progress io.Writer) (*table, error) {
	all := jobs(trials, contenders, p)
	if err := play(all, progress); err != nil {
		return nil, err
	}
	return newTable(trials, contenders, all), nil
}
