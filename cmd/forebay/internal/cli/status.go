package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"example.com/forebay"
)

type statusCmd struct {
	Admin     string        `default:"127.0.0.1:8081" help:"The address of the admin port of the running forebay. Default: ${default}."`
	TokenFile string        `help:"The file with the admin token, if there is one."`
	Timeout   time.Duration `default:"3s" help:"How long to wait for an answer. Default: ${default}."`
	Cluster   bool          `help:"Show the gates whose limit is shared, and who shares it."`
	JSON      bool          `help:"As JSON, as the admin port gives it."`
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
	body, err := c.fetch("/stats")
	if err != nil {
		tell(s.err, hinted{err, c.hint(err)})
		return exit(exitNo)
	}
	var answer struct {
		Gates []forebay.Stats `json:"gates"`
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		fmt.Fprintf(s.err, "forebay: error: %s does not answer as forebay does: %v\n", c.Admin, err)
		return exit(exitNo)
	}
	if c.JSON {
		if _, err := s.out.Write(body); err != nil {
			return err
		}
	} else if err := c.print(s.out, answer.Gates); err != nil {
		return err
	}
	for _, g := range answer.Gates {
		if g.Available == 0 || g.Draining {
			return exit(exitSaturated)
		}
	}
	return nil
}

// hint is what to do when the admin port gives no figures.
func (c statusCmd) hint(err error) string {
	if strings.HasPrefix(err.Error(), "401") {
		return "give the admin token with --token-file FILE"
	}
	return "is forebay running, and is " + c.Admin + " its admin port?"
}

func (c statusCmd) print(w io.Writer, gates []forebay.Stats) error {
	if c.Cluster {
		return printCluster(w, gates)
	}
	return printStats(w, gates)
}

func printStats(w io.Writer, gates []forebay.Stats) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "gate\tin flight\tlimit\twaiting\taccepted\trefused\tleft\t")
	for _, g := range gates {
		limit := fmt.Sprint(g.Capacity)
		switch {
		case g.Draining:
			limit += " draining"
		case g.Capacity == 0:
			limit = "closed"
		}
		fmt.Fprintf(t, "%s\t%d\t%s\t%d\t%d\t%d\t%d\t\n", g.Name, g.InUse, limit, g.Waiting, g.Accepted, g.Rejected(), g.Canceled)
	}
	return t.Flush()
}

// fetch asks the admin port.
func (c statusCmd) fetch(path string) ([]byte, error) {
	req, err := http.NewRequest(http.MethodGet, "http://"+strings.TrimPrefix(c.Admin, "http://")+path, nil)
	if err != nil {
		return nil, err
	}
	if c.TokenFile != "" {
		token, err := os.ReadFile(c.TokenFile)
		if err != nil {
			return nil, err
		}
		req.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	}
	client := http.Client{Timeout: c.Timeout}
	res, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, 16<<20))
	if err == nil && res.StatusCode != http.StatusOK {
		err = errors.New(res.Status + ": " + strings.TrimSpace(string(body)))
	}
	return body, err
}
