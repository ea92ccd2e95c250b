package cli

import (
	"net/http"
	"time"

	"example.com/forebay/cmd/forebay/internal/monitor"
)

type alertsCmd struct{ asking }

// Help is shown below the flags.
func (alertsCmd) Help() string {
	return `The rules fit the gates that run: print them again when a max_wait has changed, or a
gate has come. docs/runbook.md says what to do about each alert.

Example:
  forebay alerts > /etc/prometheus/forebay.rules.yml && promtool check rules /etc/prometheus/forebay.rules.yml`
}

// Run prints rules for Prometheus.
func (c alertsCmd) Run(s streams) error { return c.write(s, monitor.Alerts) }

type dashboardsCmd struct{ asking }

// Help is shown below the flags.
func (dashboardsCmd) Help() string {
	return `For Grafana 9 and later, to be imported as it is; it asks which Prometheus to use.

Example:
  forebay dashboards > forebay.json`
}

// Run prints a dashboard for Grafana.
func (c dashboardsCmd) Run(s streams) error { return c.write(s, monitor.Dashboard) }

// write writes what is made for the gates that run.
func (a asking) write(s streams, made func([]monitor.Gate) ([]byte, error)) error {
	body, err := a.ask(http.MethodGet, "/gates", nil)
	if err != nil {
		return a.failed(s, err)
	}
	var answer struct {
		Gates []struct {
			Name      string `json:"name"`
			MaxWaitMS int64  `json:"max_wait_ms"`
			Shared    bool   `json:"shared"`
		} `json:"gates"`
	}
	if err := a.understand(s, body, &answer); err != nil {
		return err
	}
	var gates []monitor.Gate
	for _, g := range answer.Gates {
		gates = append(gates, monitor.Gate{Name: g.Name, MaxWait: time.Duration(g.MaxWaitMS) * time.Millisecond, Shared: g.Shared})
	}
	text, err := made(gates)
	if err != nil {
		return err
	}
	_, err = s.out.Write(append(text, '\n'))
	return err
}
