package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
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

// runGate measures every section, prints it, writes the document, and judges the
// targets.
func runGate(args []string, out io.Writer) error {
	flags := flag.NewFlagSet("gate", flag.ContinueOnError)
	quick := flags.Bool("quick", false, "one short round of everything, in under a minute")
	strict := flags.Bool("strict", false, "exit with status 1 if a target is missed")
	only := flags.String("only", "", "run the sections whose name matches this `expression`")
	file := flags.String("out", "", "write the document to this `file` (default ../docs/performance.md of a run without --quick and --only)")
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
		*file = filepath.Join("..", "docs", "performance.md")
	}
	runtime.GOMAXPROCS(processors)

	rep := report{command: commandLine(args), host: thisHost(), effort: e, began: time.Now()}
	if rep.results, err = measureAll(out, e, chosen); err != nil {
		return err
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
func measureAll(out io.Writer, e effort, chosen *regexp.Regexp) (results []*result, err error) {
	for _, open := range sections {
		s, err := open(e)
		if err != nil {
			return nil, err
		}
		if chosen.MatchString(s.name) {
			r, err := s.run(out, e)
			if err != nil {
				s.end()
				return nil, fmt.Errorf("%s: %w", s.name, err)
			}
			results = append(results, r)
		}
		s.end()
	}
	if len(results) == 0 {
		return nil, fmt.Errorf("no section is called %s", chosen)
	}
	return results, nil
}

// sections makes them in the order of the document.
var sections = []func(effort) (*section, error){
	pairSection, refuseSection, contendSection, holdSection, expireSection,
	handlerSection, wireSection, goodputSection,
}

// save writes the document beside its place and moves it there, so that a run
// that is interrupted leaves the old one.
func (rep *report) save(file string) error {
	f, err := os.CreateTemp(filepath.Dir(file), ".performance-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	rep.write(f)
	if err := errors.Join(f.Chmod(0o644), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), file)
}
