package cli

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/user"
	"strconv"
	"strings"
	"time"

	"example.com/forebay/cmd/forebay/internal/admin"
)

type setCmd struct {
	asking
	Key   string `arg:"" help:"The gate's name and the key: reports.max_in_flight."`
	Value string `arg:"" help:"The limit, or closed, to refuse everybody."`
	For   string `help:"How long: 15m. Default: until unset, or until the configuration is reloaded."`
	Why   string `help:"Why, for the log and for whoever looks next."`
	By    string `help:"Who. Default: who runs this, and where."`
	JSON  bool   `help:"As JSON, as the admin port gives it."`
}

// Help is shown below the flags.
func (setCmd) Help() string {
	return `In force at once, and gone by itself: after --for, which a reload does not shorten, and
whenever forebay is restarted. It is in the log, in status, in /stats and in the metrics.

Example:
  forebay set reports.max_in_flight 4 --for 15m --why "DB failover"`
}

// wanted is the body of the request.
type wanted struct {
	MaxInFlight any    `json:"max_in_flight"`
	For         string `json:"for,omitempty"`
	Why         string `json:"why,omitempty"`
	By          string `json:"by,omitempty"`
}

// Run sets a limit.
func (c setCmd) Run(s streams) error {
	gate, err := gateOf(c.Key)
	if err != nil {
		return err
	}
	want := wanted{MaxInFlight: c.Value, For: c.For, Why: c.Why, By: author(c.By)}
	if n, err := strconv.Atoi(c.Value); err == nil {
		want.MaxInFlight = n
	}
	body, err := c.ask(http.MethodPut, limitPath(gate), want)
	if err != nil {
		return c.failed(s, err)
	}
	if c.JSON {
		_, err := s.out.Write(body)
		return err
	}
	var o admin.Override
	if err := c.understand(s, body, &o); err != nil {
		return err
	}
	printOverride(s.out, o)
	return nil
}

type unsetCmd struct {
	asking
	Key  string `arg:"" help:"The gate's name and the key: reports.max_in_flight."`
	Why  string `help:"Why, for the log."`
	By   string `help:"Who. Default: who runs this, and where."`
	JSON bool   `help:"As JSON, as the admin port gives it."`
}

// Help is shown below the flags.
func (unsetCmd) Help() string {
	return `Example:
  forebay unset reports.max_in_flight`
}

// Run puts the configured limit in force again.
func (c unsetCmd) Run(s streams) error {
	gate, err := gateOf(c.Key)
	if err != nil {
		return err
	}
	body, err := c.ask(http.MethodDelete, limitPath(gate), struct {
		Why string `json:"why"`
		By  string `json:"by"`
	}{c.Why, author(c.By)})
	if err != nil {
		return c.failed(s, err)
	}
	if c.JSON {
		_, err := s.out.Write(body)
		return err
	}
	var now struct {
		Limit int `json:"limit"`
	}
	if err := c.understand(s, body, &now); err != nil {
		return err
	}
	fmt.Fprintf(s.out, "%s.max_in_flight is %s again, as configured\n", gate, limitWord(now.Limit))
	return nil
}

const settable = ".max_in_flight"

func gateOf(key string) (gate string, err error) {
	gate, ok := strings.CutSuffix(key, settable)
	if !ok || gate == "" {
		return "", hinted{fmt.Errorf("%q cannot be set", key), "name a gate and its limit, as in reports" + settable}
	}
	return gate, nil
}

func limitPath(gate string) string { return "/gates/" + url.PathEscape(gate) + "/max_in_flight" }

// author is who runs this, as far as the system knows: under sudo who called it.
func author(by string) string {
	if by != "" {
		return by
	}
	by = os.Getenv("SUDO_USER")
	if u, err := user.Current(); by == "" && err == nil {
		by = u.Username
	}
	if host, err := os.Hostname(); err == nil && by != "" {
		by += "@" + host
	}
	return by[:min(len(by), 100)]
}

func limitWord(n int) string {
	if n == 0 {
		return "closed"
	}
	return strconv.Itoa(n)
}

// printOverride says what is in force by hand, and how it ends.
func printOverride(w io.Writer, o admin.Override) {
	until := "until somebody takes it back, or the configuration is reloaded"
	if !o.Until.IsZero() {
		until = "until " + o.Until.Local().Format("15:04:05 on Jan 2") + leftOf(o)
	}
	fmt.Fprintf(w, "%s%s is %s by hand %s; configured is %s\n", o.Gate, settable, limitWord(o.MaxInFlight), until, limitWord(o.Was))
	if o.By != "" || o.Why != "" {
		fmt.Fprintf(w, "  by %s: %s\n", orUnknown(o.By), orUnknown(o.Why))
	}
}

func leftOf(o admin.Override) string {
	if o.Since.IsZero() {
		return ""
	}
	return fmt.Sprintf(", %v after it was set", o.Until.Sub(o.Since).Round(time.Second))
}

func orUnknown(s string) string {
	if s == "" {
		return "unknown"
	}
	return s
}
