//go:build linux

package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"example.com/forebay/bench/rivals"
)

// options is what the command line says.
type options struct {
	short    bool
	only     *regexp.Regexp
	parallel int
	rounds   int
	out      string
	systems  []string
	without  bool // also with protections taken out
}

func parse(args []string) (o options, err error) {
	only, systems := "", ""
	f := flag.NewFlagSet("chaos", flag.ContinueOnError)
	f.BoolVar(&o.short, "short", false, "the scenarios that a fault is most likely to show in, once, in about a minute")
	f.StringVar(&only, "only", "", "the scenarios and removals whose name matches this `expression`")
	f.StringVar(&systems, "systems", "", "what goes through them, separated by `semicolons` (default forebay and, without --short, the rivals)")
	f.IntVar(&o.parallel, "parallel", 4, "scenarios at a time")
	f.IntVar(&o.rounds, "rounds", 2, "how often forebay goes through each: every second time the load comes in waves")
	f.StringVar(&o.out, "out", "", "write the document to this `file` (default ../docs/cluster-faults.md of a run of everything)")
	f.BoolVar(&o.without, "removals", true, "also with protections taken out")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	if o.only, err = regexp.Compile(only); err != nil {
		return o, fmt.Errorf("--only: %w", err)
	}
	switch {
	case systems != "":
		o.systems = strings.Split(systems, ";")
	case o.short:
		o.systems, o.rounds = []string{ourselves}, 1
	default:
		o.systems = append([]string{ourselves}, comparedRivals...)
	}
	for _, name := range o.systems {
		if _, ok := rivals.Find(name); !ok && name != ourselves && name != noGate {
			return o, fmt.Errorf("--systems: there is no system %q; give %s, or rivals by name and client, as %q", name, ourselves, comparedRivals[0])
		}
	}
	if o.out == "" && systems == "" && only == "" && !o.short {
		o.out = filepath.Join("..", "docs", "cluster-faults.md")
	}
	return o, nil
}

// comparedRivals is one of each kind, by the client that is most used with it.
var comparedRivals = []string{
	rivals.TokenList + ", " + rivals.GoRedis,
	rivals.LeaseSet + ", " + rivals.Rueidis,
	rivals.Counter + ", " + rivals.Rueidis,
	rivals.Redsync + ", " + rivals.GoRedis,
}

// run plays everything, prints what happened as it does, writes the document, and
// fails if forebay did what it must not, or a missing protection was not missed.
func run(args []string, out io.Writer) error {
	o, err := parse(args)
	if err != nil {
		return err
	}
	if _, err := exec.LookPath("redis-server"); err != nil {
		fmt.Fprintln(out, "== NO REDIS-SERVER: nothing goes wrong here; on Debian: apt-get install redis-server redis-sentinel")
		return nil
	}
	dir, err := os.MkdirTemp("", "chaos")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	plays, err := o.plays(dir, out)
	if err != nil {
		return err
	}
	began := time.Now()
	r := &report{began: began, verdicts: playAll(plays, dir, o.parallel, out)}
	r.took = time.Since(began)
	if o.out != "" {
		if err := r.save(o.out); err != nil {
			return err
		}
		fmt.Fprintln(out, "written to", o.out)
	}
	if n := r.wrong(); n > 0 {
		return fmt.Errorf("%d of %d runs are wrong", n, len(r.verdicts))
	}
	fmt.Fprintf(out, "%d runs in %.0f s, and nothing is wrong\n", len(r.verdicts), r.took.Seconds())
	return nil
}

// plays lists what is to be played.
func (o options) plays(dir string, out io.Writer) (all []play, err error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	b := &builder{dir: dir, out: out, plain: program}
	for _, name := range o.systems {
		c := contender{name: name, system: name}
		for round := range o.rounds {
			if round > 0 && !c.ours() {
				break
			}
			for _, s := range scenarios() {
				if !o.only.MatchString(s.name) || o.short && !s.short || s.fits != nil && !s.fits(c) {
					continue
				}
				if c.program, err = b.program(s.name, s.edits); err != nil {
					return nil, err
				}
				all = append(all, play{scenario: s, contender: c, waves: round%2 == 1})
			}
		}
	}
	if !o.without {
		return all, nil
	}
	return o.withRemovals(all, b)
}

// withRemovals adds what is played with protections taken out.
func (o options) withRemovals(all []play, b *builder) ([]play, error) {
	for _, r := range removals() {
		c := contender{name: "without " + r.name, system: ourselves}
		if o.short && !r.short || !o.only.MatchString(c.name) {
			continue
		}
		for _, s := range scenarios() {
			if s.name != r.under {
				continue
			}
			var err error
			if c.program, err = b.program(c.name, r.edits); err != nil {
				return nil, err
			}
			all = append(all, play{scenario: s, contender: c, removal: &r})
		}
	}
	return all, nil
}

// builder builds workers, one by one: that takes both processors anyway.
type builder struct {
	dir   string
	out   io.Writer
	plain string // this program
	root  string
	built map[string]string // by what they are built of
}

// program returns a worker of edited sources; what is only tells whoever watches.
func (b *builder) program(what string, edits []edit) (path string, err error) {
	if len(edits) == 0 {
		return b.plain, nil
	}
	key := fmt.Sprintf("%q", edits)
	if path := b.built[key]; path != "" {
		return path, nil
	}
	if b.root == "" {
		b.built = map[string]string{}
		if b.root, err = repository(); err != nil {
			return "", err
		}
	}
	sub := filepath.Join(b.dir, fmt.Sprintf("built%d", len(b.built)))
	if err := os.Mkdir(sub, 0o700); err != nil {
		return "", err
	}
	fmt.Fprintf(b.out, "building a worker: %s\n", what)
	path, err = build(edits, b.root, sub)
	b.built[key] = path
	return path, err
}
