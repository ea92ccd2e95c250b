package cli

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"example.com/forebay/cmd/forebay/internal/story"
)

type explainCmd struct {
	asking
	ID   string `arg:"" help:"The X-Request-Id of the answer, the id that the client sent, or that of a story."`
	JSON bool   `help:"As JSON, as the admin port gives it."`
}

// Help is shown below the flags.
func (explainCmd) Help() string {
	return `Ends with 0 if the call is known, 1 if it is not or nobody answers. Refusals are kept
longest; for how long is said of an id that is unknown. Several calls can have one id:
all are told, the latest first.

Example:
  forebay explain 4bf92f35a1b2c3d4`
}

// Run prints what became of a call.
func (c explainCmd) Run(s streams) error {
	body, err := c.ask(http.MethodGet, "/explain/"+url.PathEscape(c.ID), nil)
	if err != nil {
		return c.failed(s, err)
	}
	if c.JSON {
		_, err := s.out.Write(body)
		return err
	}
	var told struct {
		Stories []story.Story `json:"stories"`
		LeftOut int           `json:"left_out"`
	}
	if err := c.understand(s, body, &told); err != nil {
		return err
	}
	for i := range told.Stories {
		if i > 0 {
			fmt.Fprintln(s.out)
		}
		printStory(s.out, &told.Stories[i])
	}
	if told.LeftOut > 0 {
		fmt.Fprintf(s.out, "\n%d older calls with this id are not shown\n", told.LeftOut)
	}
	return nil
}

func printStory(w io.Writer, st *story.Story) {
	line := func(name, format string, args ...any) {
		fmt.Fprintf(w, "%-12s"+format+"\n", append([]any{name}, args...)...)
	}
	line("call", "%s", st.RequestID)
	line("story", "%s", st.ID)
	if st.ClientID != "" {
		line("client's id", "%s", st.ClientID)
	}
	line("at", "%s", st.At.Format("2006-01-02 15:04:05.000 MST"))
	if st.RemoteIP != "" {
		line("caller", "%s", st.RemoteIP)
	}
	line("route", "%s", orNone(st.Route))
	line("gate", "%s%s", orNone(st.Gate), chainOf(st))
	if st.Lane != "" {
		line("lane", "%s", st.Lane)
	}
	line("decision", "%s: %s", st.Decision, st.Why)
	if st.Gate != "" {
		line("gate was", "%d of %d in flight, %d waiting%s", st.InFlight, st.Limit, st.Waiting, placeOf(st))
		line("waited", "%v of %v", millis(st.WaitedMS), millis(st.MaxWaitMS))
	}
	if st.Status > 0 {
		line("answer", "%d%s", st.Status, retryOf(st))
	}
	if st.Ended != "" {
		line("ended", "%s, after %v with the slot", st.Ended, millis(st.HeldMS))
	}
	printHolders(line, st.Holders)
}

func printHolders(line func(name, format string, args ...any), h *story.Holders) {
	if h == nil {
		return
	}
	line("held by", "%s, %v before", callsOf(h.Calls), millis(h.BeforeMS))
	for _, r := range h.Routes {
		line("", "%d of %s, the oldest for %v", r.Calls, orNone(r.Route), (time.Duration(r.OldestMS) * time.Millisecond).Round(time.Millisecond))
	}
	if h.Others > 0 {
		line("", "%d of other routes", h.Others)
	}
}

func chainOf(st *story.Story) string {
	if len(st.Gates) < 2 {
		return ""
	}
	return ", of the chain " + strings.Join(st.Gates, ", ")
}

func placeOf(st *story.Story) string {
	if st.Place == 0 {
		return ""
	}
	return fmt.Sprintf("; its place would have been %d", st.Place)
}

func retryOf(st *story.Story) string {
	switch {
	case st.RetryWhy == "":
		return ""
	case st.RetryAfter == 0:
		return "; no Retry-After: " + st.RetryWhy
	}
	return fmt.Sprintf(", Retry-After %d s: %s", st.RetryAfter, st.RetryWhy)
}

func callsOf(n int) string {
	if n == 1 {
		return "1 call"
	}
	return fmt.Sprintf("%d calls", n)
}
