// Package cli is the command line: it parses, calls and prints.
//
// Every verb ends in 0, 1 (the answer is no), 2 (usage, or a configuration that serve
// refuses) or, for status alone, 3 (saturated).
package cli

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/alecthomas/kong"
)

// The ways to end.
const (
	exitOK        = 0
	exitNo        = 1
	exitUsage     = 2
	exitSaturated = 3
)

// commands are the verbs. The help of each ends with an example.
type commands struct {
	Serve      serveCmd      `cmd:"" help:"Stand in front of a backend."`
	Check      checkCmd      `cmd:"" help:"Say what is wrong with a configuration, before it is used."`
	Status     statusCmd     `cmd:"" help:"Show what the gates of a running forebay do."`
	Explain    explainCmd    `cmd:"" help:"Say what became of one call, and why."`
	Set        setCmd        `cmd:"" help:"Put another limit in force, for a while."`
	Unset      unsetCmd      `cmd:"" help:"Put the configured limit in force again."`
	Dashboards dashboardsCmd `cmd:"" help:"Print a dashboard for Grafana."`
	Alerts     alertsCmd     `cmd:"" help:"Print alerts for Prometheus."`
	Simulate   simulateCmd   `cmd:"" help:"Play a scenario in simulated time: what a limit would do."`
	Demo       demoCmd       `cmd:"" help:"Watch a backend collapse without a gate, and stay up with one."`
	Version    versionCmd    `cmd:"" help:"Say which version this is."`
}

// streams are where a verb writes.
type streams struct{ out, err io.Writer }

// exit is the error of a verb that ends with a code and has said why.
type exit int

func (e exit) Error() string { return fmt.Sprintf("exit %d", int(e)) }

// hinted is an error for which the remedy is known.
type hinted struct {
	error
	hint string
}

func (h hinted) Unwrap() error { return h.error }

// Main runs one command line and returns the exit code.
func Main(args []string, stdout, stderr io.Writer) int {
	if len(args) == 0 {
		args = []string{"--help"}
	}
	code := -1
	parser := kong.Must(&commands{},
		kong.Name("forebay"),
		kong.Description("An overload gate in front of an HTTP backend: a bounded number of requests run, a few wait briefly, the rest is refused at once.\n\nTry it: forebay demo"),
		kong.Writers(stdout, stderr),
		kong.Exit(func(c int) { code = c }),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, NoExpandSubcommands: true}),
	)
	ctx, err := parser.Parse(args)
	if code >= 0 { // help was asked for
		return code
	}
	if err != nil {
		tell(stderr, hinted{err, "forebay --help lists the verbs, forebay VERB --help what each takes"})
		return exitUsage
	}
	return codeOf(ctx.Run(streams{stdout, stderr}), stderr)
}

// codeOf tells an error that has not been told and returns its exit code.
func codeOf(err error, stderr io.Writer) int {
	var e exit
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &e):
		return int(e)
	}
	tell(stderr, err)
	return exitUsage
}

// tell prints an error, and the remedy where one is known.
func tell(w io.Writer, err error) {
	for line := range strings.Lines(err.Error()) {
		fmt.Fprintf(w, "forebay: error: %s\n", strings.TrimRight(line, "\n"))
	}
	var h hinted
	if errors.As(err, &h) {
		fmt.Fprintf(w, "forebay: hint: %s\n", h.hint)
	}
}
