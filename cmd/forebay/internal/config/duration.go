package config

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

var (
	goodDuration  = regexp.MustCompile(`^((0|[1-9][0-9]*)(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$`)
	bareNumber    = regexp.MustCompile(`^[+-]?[0-9][0-9_]*(\.[0-9]*)?([eE][+-]?[0-9]+)?$`)
	dayDuration   = regexp.MustCompile(`^([0-9]{1,5})\s*(d|day|days)$`)
	looseDuration = regexp.MustCompile(`^([0-9]+(?:\.[0-9]+)?)\s*([A-Za-zµ]+)$`)
)

// duration reads a time with its unit, from least to most; a bare 0 where zero is
// allowed, since it is the same in every unit.
func (d *decoder) duration(v value, least, most time.Duration, example string) (time.Duration, bool) {
	if !d.scalar(v, "write "+example) {
		return 0, false
	}
	s := v.Value
	if s == "0" && !v.quoted() && least <= 0 {
		return 0, true
	}
	if !goodDuration.MatchString(s) && !(s == "0" && !v.quoted()) {
		what, remedy := explainDuration(s, example)
		d.wrongValue(v, remedy, "is %s%s", describe(v.Node), what)
		return 0, false
	}
	t, err := time.ParseDuration(s) // takes a bare 0 as well
	if err != nil || t < least || t > most {
		d.wrongValue(v, fmt.Sprintf("write %s to %s", FormatDuration(least), FormatDuration(most)), "is %s", describe(v.Node))
		return 0, false
	}
	return t, true
}

func explainDuration(s, example string) (what, remedy string) {
	trimmed := strings.TrimSpace(s)
	if m := dayDuration.FindStringSubmatch(trimmed); m != nil {
		days, _ := strconv.Atoi(m[1])
		return ", and days are no unit here", fmt.Sprintf("write %dh", days*24)
	}
	switch {
	case trimmed == "":
		return "", "write " + example
	case strings.HasPrefix(trimmed, "-"):
		return ", below zero", "write " + example
	case bareNumber.MatchString(trimmed):
		digits := strings.TrimSuffix(strings.TrimPrefix(trimmed, "+"), ".")
		remedy := fmt.Sprintf("add the unit that is meant: %sms or %ss", digits, digits)
		if strings.ContainsAny(digits, "eE_") || leadingZeros.MatchString(digits) {
			remedy = "write digits and a unit, such as " + example
		}
		return ", a number without a unit", remedy
	case goodDuration.MatchString(trimmed):
		return ", with a space around it", "write " + trimmed
	}
	if m := looseDuration.FindStringSubmatch(trimmed); m != nil {
		if unit := unitOf(m[2]); unit != "" {
			number := strings.TrimLeft(m[1], "0")
			if number == "" || number[0] == '.' {
				number = "0" + number
			}
			return "", "write " + number + unit
		}
	}
	return ", which is no duration", "write digits and a unit (ms, s, m, h), such as " + example
}

// unitOf returns the unit that a word stands for, "" if none.
func unitOf(word string) string {
	switch strings.ToLower(word) {
	case "ms", "msec", "msecs", "millis", "millisecond", "milliseconds":
		return "ms"
	case "s", "sec", "secs", "second", "seconds":
		return "s"
	case "m", "min", "mins", "minute", "minutes":
		return "m"
	case "h", "hr", "hrs", "hour", "hours":
		return "h"
	}
	return ""
}

// FormatDuration writes a duration as a file has it, without the zeros that Go's own
// form ends in: "1m" rather than "1m0s".
func FormatDuration(t time.Duration) string {
	s := t.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}
