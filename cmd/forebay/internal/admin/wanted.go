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
	reason      Reason
}

const (
	mostInFlight = 1<<20 - 1 // what a gate takes
	// A limit for less than a second is a slip of the unit; one for more than a month
	// belongs in the configuration, where the next person looks.
	shortest = time.Second
	longest  = 31 * 24 * time.Hour
	maxWhy   = 200 // bytes: a line in a log
	maxBy    = 100
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
	w.reason, problems = parseReason(fields, problems)
	return w, problems
}

// parseReason returns why, and who, if they say so, and adds what is wrong with it.
func parseReason(fields map[string]json.RawMessage, problems []string) (Reason, []string) {
	var of Reason
	for _, f := range []struct {
		name string
		most int
		into *string
	}{{"why", maxWhy, &of.Why}, {"by", maxBy, &of.By}} {
		raw, sent := fields[f.name]
		if !sent {
			continue
		}
		problem := ""
		if *f.into, problem = parseLine(f.name, raw, f.most); problem != "" {
			problems = append(problems, problem)
		}
	}
	return of, problems
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

func parseLine(name string, raw json.RawMessage, most int) (text, problem string) {
	if json.Unmarshal(raw, &text) != nil || raw[0] != '"' {
		return "", fmt.Sprintf("%s is %s; it must be a text", name, shorten(string(raw)))
	}
	if len(text) > most || strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return "", fmt.Sprintf("%s has %d bytes; it must be one line of at most %d", name, len(text), most)
	}
	return text, ""
}

// shorten keeps an error in one line.
func shorten(s string) string {
	const most = 40
	if len(s) > most {
		return strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s
}
