// Command lanes shows who is served first, and who is not starved, when a gate has much
// more to do than it can: lanes, fairness, appointments, deadlines, in simulated time and
// by the code of the server. It writes docs/lanes-performance.md.
//
//	go run ./lanes           # everything, in about a minute
//	go run ./lanes --short   # what CI runs; writes nothing
//	go run ./lanes --strict  # exit status 1 if a pass line is missed
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		if !errors.Is(err, flag.ErrHelp) {
			fmt.Fprintln(os.Stderr, "lanes: error:", err)
		}
		os.Exit(1)
	}
}

var errMissed = errors.New("a pass line is missed")

func run(args []string, out io.Writer) error {
	flags := flag.NewFlagSet("lanes", flag.ContinueOnError)
	short := flags.Bool("short", false, "one seed of each, and shorter; write nothing")
	strict := flags.Bool("strict", false, "exit with status 1 if a pass line is missed")
	file := flags.String("out", filepath.Join("..", "docs", "lanes-performance.md"), "write the document to this `file`, unless --short")
	if err := flags.Parse(args); err != nil {
		return err
	}
	began := time.Now()
	seeds := 5
	if *short {
		seeds = 1
	}
	rows, err := play(suite(*short), seeds, os.Stderr)
	if err != nil {
		return err
	}
	missed := 0
	for _, r := range rows {
		if !r.holds() {
			missed++
		}
	}
	write(out, rows, seeds)
	if !*short {
		if err := save(*file, rows, seeds); err != nil {
			return err
		}
		fmt.Fprintln(out, "\nwritten to", *file)
	}
	fmt.Fprintf(os.Stderr, "%.0f s, %d of %d pass lines are missed\n", time.Since(began).Seconds(), missed, len(rows))
	if *strict && missed > 0 {
		return errMissed
	}
	return nil
}
