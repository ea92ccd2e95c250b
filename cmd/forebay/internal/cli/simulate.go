package cli

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"example.com/forebay/cmd/forebay/internal/config"
	"example.com/forebay/cmd/forebay/internal/picture"
	"example.com/forebay/internal/simulate"
)

type simulateCmd struct {
	File    string   `arg:"" help:"The scenario."`
	Set     []string `sep:"none" help:"Another value for a key: gates.orders.max_in_flight=24. May be given several times."`
	NoGates bool     `help:"Let everybody in, to see what the gates are for."`
	Plot    string   `help:"Draw what happened over time, into a file that ends in .svg or .png."`
	JSON    bool     `help:"As JSON, with what happened over time."`
}

// Help is shown below the flags.
func (simulateCmd) Help() string {
	return `Plays calls that nobody makes through the code that admits and refuses in serve, in
simulated time. The same scenario and seed give the same result, bit for bit.
docs/scenarios.md says what a scenario can have.

Examples:
  forebay simulate shop.yaml
  forebay simulate shop.yaml --no-gates
  forebay simulate shop.yaml --set gates.orders.max_in_flight=24 --plot shop.svg`
}

// Run plays the scenario.
func (c simulateCmd) Run(s streams) error {
	format, err := c.format()
	if err != nil {
		return err
	}
	sc, err := config.LoadScenario(c.File, c.Set...)
	if err != nil {
		return err
	}
	if c.NoGates {
		sc.Gates = nil
		for i := range sc.Routes {
			sc.Routes[i].Gates = nil
		}
	}
	r, err := simulate.Run(sc, progress(s.err, sc.For))
	if err != nil {
		return err
	}
	if c.JSON {
		err = printJSON(s.out, r)
	} else {
		err = printResult(s.out, r)
	}
	if err != nil || format == "" {
		return err
	}
	drawn, err := picture.Draw(r, format)
	if err != nil {
		return err
	}
	return os.WriteFile(c.Plot, drawn, 0o644)
}

// format returns what the picture is to be, "" if none is wanted.
func (c simulateCmd) format() (string, error) {
	if c.Plot == "" {
		return "", nil
	}
	format := strings.TrimPrefix(filepath.Ext(c.Plot), ".")
	if !slices.Contains(picture.Formats, format) {
		return "", hinted{fmt.Errorf("--plot %s is no picture that can be drawn", c.Plot), "let its name end in .svg or .png"}
	}
	return format, nil
}

// progress returns what shows how far a scenario is, where somebody watches.
func progress(w io.Writer, all time.Duration) func(done time.Duration) {
	if !isTerminal(w) {
		return nil
	}
	return func(done time.Duration) {
		end := "\r"
		if done == all {
			end = "\r\x1b[K"
		}
		fmt.Fprintf(w, "\r%v of %v simulated%s", done.Round(time.Millisecond), all, end)
	}
}

// printResult prints tables: who called, what the gates did, what the backend did.
func printResult(out io.Writer, r *simulate.Result) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "CLIENT\tCALLS\tANSWERED\tIN TIME\tATTEMPTS\tREFUSED\tLEFT\tP50\tP99\tREFUSED AFTER")
	for _, c := range r.Clients {
		refused := uint64(0)
		for _, n := range c.Refused {
			refused += n
		}
		fmt.Fprintf(w, "%s\t%d\t%d\t%s\t%d\t%d\t%d\t%s\t%s\t%s\n", c.Client, c.Calls, c.Answered, share(c.Answered, c.Calls),
			c.Attempts, refused, c.Left, milliseconds(c.Took.P50), milliseconds(c.Took.P99), milliseconds(c.Told.Mean))
	}
	if len(r.Gates) > 0 {
		fmt.Fprintln(w, "\nGATE\tLIMIT\tIN FLIGHT\tWAITING\tWAITED P50\tP99\tDECISIONS")
	}
	for _, g := range r.Gates {
		fmt.Fprintf(w, "%s\t%.1f\t%.1f\t%.1f\t%s\t%s\t%s\n", g.Gate, g.Limit, g.InFlight, g.Waiting,
			milliseconds(g.Waited.P50), milliseconds(g.Waited.P99), decisions(g.Decisions))
	}
	if len(r.Resources) > 0 {
		fmt.Fprintln(w, "\nRESOURCE\tDOES\tCALLS\tWAITING")
	}
	for _, b := range r.Resources {
		fmt.Fprintf(w, "%s\t%.1f%%\t%.1f\t%.1f\n", b.Resource, 100*b.Busy, b.Calls, b.Waiting)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(out, "\n%d of %d calls answered in time, %.1f%% of the %.0f that could be; %.1f%% of the work was for callers who had left.\n",
		r.Answered, r.Calls, 100*r.Goodput, r.Ideal, 100*r.Wasted)
	return err
}

func share(part, whole uint64) string {
	if whole == 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f%%", 100*float64(part)/float64(whole))
}

func milliseconds(seconds float64) string {
	if seconds >= 10 {
		return fmt.Sprintf("%.1f s", seconds)
	}
	return fmt.Sprintf("%.1f ms", 1000*seconds)
}

// decisions lists what a gate did, most first.
func decisions(counts map[string]uint64) string {
	words := slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), strings.Compare(a, b))
	})
	for i, d := range words {
		words[i] = fmt.Sprintf("%s %d", d, counts[d])
	}
	return strings.Join(words, ", ")
}
