package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"runtime"
	"time"
)

// processors is what every figure is measured with: the contended targets are
// stated for two, and a fixed number makes two machines' ratios comparable.
const processors = 2

// errMissed is the end of a --strict run that missed a target.
var errMissed = errors.New("a target was missed")

// suite is sections that make one document.
type suite struct {
	name     string // on the command line
	making   string // the make target
	document string // in docs
	title    string
	about    string                           // what holds for all sections
	peer     func() string                    // what a run is beside Go modules; nil: nothing
	sections []func(effort) (*section, error) // makes them in the order of the document
	modules  []string                         // whose versions matter to the reader
	work     func(effort) string              // says how much was measured
	limits   []string                         // what a reader must not take the figures for
	appendix func(*printer)                   // what follows; nil: nothing
}

// run measures every section, prints it, writes the document, and judges the
// targets.
func (s *suite) run(args []string, out io.Writer) (err error) {
	flags := flag.NewFlagSet(s.name, flag.ContinueOnError)
	quick := flags.Bool("quick", false, "one short round of everything, in under a minute")
	strict := flags.Bool("strict", false, "exit with status 1 if a target is missed")
	only := flags.String("only", "", "run the sections whose name matches this `expression`")
	place := filepath.Join("..", "docs", s.document)
	file := flags.String("out", "", "write the document to this `file` (default "+place+" of a run without --quick and --only)")
	if err := flags.Parse(args); err != nil {
		return err
	}
	chosen, err := regexp.Compile(*only)
	if err != nil {
		return fmt.Errorf("--only: %w", err)
	}
	e := full
	if *quick {
		e = brief
	}
	if *file == "" && !*quick && *only == "" {
		*file = place
	}
	runtime.GOMAXPROCS(processors)

	defer bench.end()
	rep := report{suite: s, command: s.commandLine(args), host: s.thisHost(), effort: e, began: time.Now()}
	if rep.results, err = s.measureAll(out, e, chosen); err != nil {
		return err
	}
	if s.peer != nil {
		rep.host.modules = append(rep.host.modules, s.peer())
	}
	rep.took = time.Since(rep.began)
	fmt.Fprintln(out)
	rep.write(out)
	if *file != "" {
		if err := rep.save(*file); err != nil {
			return err
		}
		fmt.Fprintln(out, "written to", *file)
	}
	if *strict && rep.missed() > 0 {
		return errMissed
	}
	return nil
}

// measureAll runs the chosen sections one after the other, each in rounds.
func (s *suite) measureAll(out io.Writer, e effort, chosen *regexp.Regexp) (results []*result, err error) {
	defer func() {
		switch why := recover().(type) {
		case nil:
		case unfit:
			err = errors.New(string(why))
		default:
			panic(why)
		}
	}()
	for _, open := range s.sections {
		section, err := open(e)
		if err != nil {
			return nil, err
		}
		if chosen.MatchString(section.name) {
			r, err := section.run(out, e)
			if err != nil {
				section.end()
				return nil, fmt.Errorf("%s: %w", section.name, err)
			}
			results = append(results, r)
		}
		section.end()
	}
	if len(results) == 0 {
		return nil, fmt.Errorf("no section is called %s", chosen)
	}
	return results, nil
}
