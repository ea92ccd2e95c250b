package cli

import (
	"fmt"
	"io"
	"net/http"
	"text/tabwriter"

	"example.com/forebay"
	"example.com/forebay/cmd/forebay/internal/admin"
	"example.com/forebay/cmd/forebay/internal/verdict"
)

type statusCmd struct {
	asking
	Cluster bool `help:"Show the gates whose limit is shared, and who shares it."`
	JSON    bool `help:"As JSON, as the admin port gives it."`
}

// Help is shown below the flags.
func (statusCmd) Help() string {
	return `Ends with 0 if there is room everywhere, 3 if a gate is full, closed or draining, 1 if
nobody answers. Left are the callers that went away while they waited. Of a gate in a
cluster in flight, limit and waiting are those of all its programs.

Examples:
  forebay status --admin 127.0.0.1:8081
  forebay status --cluster`
}

// Run prints a line for each gate.
func (c statusCmd) Run(s streams) error {
	body, err := c.ask(http.MethodGet, "/stats", nil)
	if err != nil {
		return c.failed(s, err)
	}
	var answer struct {
		Gates     []gateStatus      `json:"gates"`
		Overrides []admin.Override  `json:"overrides"`
		Verdicts  []verdict.Verdict `json:"verdicts"`
	}
	if err := c.understand(s, body, &answer); err != nil {
		return err
	}
	if c.JSON {
		if _, err := s.out.Write(body); err != nil {
			return err
		}
	} else {
		if err := c.print(s.out, answer.Gates); err != nil {
			return err
		}
		for _, o := range answer.Overrides {
			printOverride(s.out, o)
		}
		for _, v := range answer.Verdicts {
			fmt.Fprintf(s.out, "%s: %s: %s\n  %s\n", v.Gate, v.Verdict, v.Text, v.Remedy)
		}
	}
	for _, g := range answer.Gates {
		if g.Available == 0 || g.Draining {
			return exit(exitSaturated)
		}
	}
	return nil
}

// gateStatus is what is shown of a gate.
type gateStatus struct {
	forebay.Stats
	Auto *admin.Auto `json:"auto"` // nil: its limit stays as it is
}

// limit is the gate's, and why it is that one.
func (g gateStatus) limit() string {
	limit := fmt.Sprint(g.Capacity)
	switch a := g.Auto; {
	case g.Draining:
		return limit + " draining"
	case g.Capacity == 0:
		return "closed"
	case a != nil && a.SetTo == 0:
		return limit + " auto, " + a.Reason
	}
	return limit
}

func (c statusCmd) print(w io.Writer, gates []gateStatus) error {
	if c.Cluster {
		return printCluster(w, gates)
	}
	return printStats(w, gates)
}

func printStats(w io.Writer, gates []gateStatus) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "gate\tin flight\tlimit\twaiting\taccepted\trefused\tleft\t")
	for _, g := range gates {
		fmt.Fprintf(t, "%s\t%d\t%s\t%d\t%d\t%d\t%d\t\n", g.Name, g.InUse, g.limit(), g.Waiting, g.Accepted, g.Rejected(), g.Canceled)
		for _, l := range g.Lanes {
			name := l.Name
			if name == "" {
				name = "no lane"
			}
			fmt.Fprintf(t, "%s: %s\t%d\t\t%d\t%d\t%d\t\t\n", g.Name, name, l.InUse, l.Waiting, l.Granted, l.Refused)
		}
	}
	return t.Flush()
}
