package admin

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// wanted is the limit that somebody asks for.
type wanted struct {
	maxInFlight int           // 0: closed
	lasts       time.Duration // 0: until cleared or reloaded
	why         string
}

const (
	mostInFlight = 1<<20 - 1 // what a gate takes
	// A limit for less than a second is a slip of the unit; one for more than a month
	// belongs in the configuration, where the next person looks.
	shortest = time.Second
	longest  = 31 * 24 * time.Hour
	maxWhy   = 200 // bytes: a line in a log
)

// parseWanted returns what the fields ask for, or every mistake in them.
func parseWanted(fields map[string]json.RawMessage) (w wanted, problems []string) {
	note := func(problem string) {
		if problem != "" {
			problems = append(problems, problem)
		}
	}
	var problem string
	w.maxInFlight, problem = parseMaxInFlight(fields["max_in_flight"])
	note(problem)
	if raw, sent := fields["for"]; sent {
		w.lasts, problem = parseFor(raw)
		note(problem)
	}
	if raw, sent := fields["why"]; sent {
		w.why, problem = parseWhy(raw)
		note(problem)
	}
	return w, problems
}

// parseMaxInFlight takes a whole number, or "closed" as the configuration does. 0 is
// no number for it there, and not here: it is what a script sends whose variable is
// empty.
func parseMaxInFlight(raw json.RawMessage) (n int, problem string) {
	right := fmt.Sprintf(`it must be 1 to %d, or "closed"`, mostInFlight)
	if raw == nil {
		return 0, "max_in_flight is missing; " + right
	}
	if string(raw) == `"closed"` {
		return 0, ""
	}
	n, err := strconv.Atoi(string(raw))
	if err != nil || n < 1 || n > mostInFlight {
		return 0, fmt.Sprintf("max_in_flight is %s; %s", shorten(string(raw)), right)
	}
	return n, ""
}

func parseFor(raw json.RawMessage) (d time.Duration, problem string) {
	const right = `it must be a text with a unit, "1s" to "744h", or left out for a limit that stays until it is taken back or the configuration is reloaded`
	var text string
	if json.Unmarshal(raw, &text) != nil || raw[0] != '"' {
		return 0, fmt.Sprintf("for is %s; %s", shorten(string(raw)), right)
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < shortest || d > longest {
		return 0, fmt.Sprintf("for is %q; %s", shorten(text), right)
	}
	return d, ""
}

func parseWhy(raw json.RawMessage) (why, problem string) {
	if json.Unmarshal(raw, &why) != nil || raw[0] != '"' {
		return "", fmt.Sprintf("why is %s; it must be a text", shorten(string(raw)))
	}
	if len(why) > maxWhy || strings.ContainsFunc(why, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return "", fmt.Sprintf("why has %d bytes; it must be one line of at most %d", len(why), maxWhy)
	}
	return why, ""
}

// shorten keeps an error in one line.
func shorten(s string) string {
	const most = 40
	if len(s) > most {
		return strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s
}
