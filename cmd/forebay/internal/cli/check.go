package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"example.com/forebay/cmd/forebay/internal/check"
	"example.com/forebay/cmd/forebay/internal/config"
)

type checkCmd struct {
	File    string  `arg:"" help:"The configuration."`
	Route   *string `help:"Say what one request would meet: \"GET /reports/7\"."`
	Offline bool    `help:"Ask no Redis: only what stands in the file."`
	JSON    bool    `help:"As JSON."`
}

// Help is shown below the flags.
func (checkCmd) Help() string {
	return `Ends with 2 if serve would refuse the file, 1 if something in it will go wrong, 0
with warnings, and with what cannot be known from the file alone. The Redis of a
cluster is asked, and left as it is.

Examples:
  forebay check forebay.yaml
  forebay check forebay.yaml --route "GET /reports/7"`
}

// Run prints what there is to say.
func (c checkCmd) Run(s streams) error {
	cfg, err := config.Load(c.File)
	if err != nil {
		return c.refuse(s, err)
	}
	if c.Route != nil {
		return c.explain(s, cfg)
	}
	findings := check.Check(cfg)
	if cfg.Cluster != nil && !c.Offline {
		seen, err := lookAt(cfg)
		findings = check.Sorted(append(findings, check.CheckStore(cfg, seen, err)...))
	}
	if c.JSON {
		if err := printJSON(s.out, struct {
			File     string          `json:"file"`
			Findings []check.Finding `json:"findings"`
		}{c.File, findings}); err != nil {
			return err
		}
	} else {
		c.print(s.out, findings)
	}
	if check.Worst(findings) == check.Error {
		return exit(exitNo)
	}
	return nil
}

// refuse says why serve would not start with the file.
func (c checkCmd) refuse(s streams, err error) error {
	var problems config.Problems
	if !errors.As(err, &problems) || !c.JSON {
		return err
	}
	if err := printJSON(s.out, struct {
		File     string          `json:"file"`
		Problems config.Problems `json:"problems"`
	}{c.File, problems}); err != nil {
		return err
	}
	return exit(exitUsage)
}

func (c checkCmd) print(w io.Writer, findings []check.Finding) {
	counts := map[check.Severity]int{}
	for _, f := range findings {
		counts[f.Severity]++
		place := c.File
		if f.Pos.Line > 0 {
			place = fmt.Sprintf("%s:%d:%d", c.File, f.Pos.Line, f.Pos.Col)
		}
		fmt.Fprintf(w, "%-8s %s: %s (%s)\n", f.Severity, place, f.Text, f.Rule)
	}
	var told []string
	for _, sev := range []check.Severity{check.Error, check.Warning, check.Unknown, check.OK} {
		told = append(told, fmt.Sprintf("%d %v", counts[sev], sev))
	}
	fmt.Fprintf(w, "%s: %s\n", c.File, strings.Join(told, ", "))
}

// explain says what one request would meet.
func (c checkCmd) explain(s streams, cfg *config.Config) error {
	e, err := check.Explain(cfg, *c.Route)
	if err != nil {
		return err
	}
	if c.JSON {
		return printJSON(s.out, e)
	}
	fmt.Fprintf(s.out, "request   %s\nroute     %s\n", e.Request, orNone(e.Route))
	for _, g := range e.Gates {
		of := ""
		if g.Cluster != "" {
			of = ", of the cluster " + g.Cluster
		}
		fmt.Fprintf(s.out, "gate      %s: max_in_flight %s, max_wait %v, max_waiting %d%s\n", g.Name, g.Limit(), g.MaxWait, g.MaxWaiting, of)
	}
	if e.Lane != "" {
		fmt.Fprintf(s.out, "lane      %s\n", e.Lane)
	}
	if len(e.Gates) > 0 {
		fmt.Fprintf(s.out, "patience  %v\n", e.Patience)
	}
	for _, why := range e.Why {
		fmt.Fprintf(s.out, "why       %s\n", why)
	}
	return nil
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}

func printJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}
