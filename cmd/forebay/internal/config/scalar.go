package config

import (
	"fmt"
	"math/big"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"
)

// scalar tells whether v is a single value, and complains if not.
func (d *decoder) scalar(v value, remedy string) bool {
	if v.Kind != yaml.ScalarNode {
		d.wrongValue(v, remedy, "is %s", describe(v.Node))
		return false
	}
	return true
}

// quoted tells whether a scalar is in quotes, or a block of text.
func (v value) quoted() bool { return v.Style&^yaml.TaggedStyle&^yaml.FlowStyle != 0 }

// text reads words. A number or a yes is refused: it was meant as something else, or
// will be read as something else by the next tool.
func (d *decoder) text(v value, example string) (string, bool) {
	if !d.scalar(v, "write "+example) {
		return "", false
	}
	switch {
	case v.Tag != "!!str":
		d.wrongValue(v, fmt.Sprintf("write %s, or put it in quotes", example), "is %s, which YAML takes for something other than text", v.Value)
	case strings.TrimSpace(v.Value) == "":
		d.wrongValue(v, "write "+example, "is empty text")
	case strings.ContainsAny(v.Value, "\n\t"):
		d.wrongValue(v, "write it in one line, with spaces", "holds a line end or a tab")
	case v.Value != strings.TrimSpace(v.Value):
		d.wrongValue(v, "write "+strings.TrimSpace(v.Value), "begins or ends with a space")
	default:
		return v.Value, true
	}
	return "", false
}

// word reads one of a few words.
func (d *decoder) word(v value, words ...string) (string, bool) {
	list := "write " + oneOf(words)
	if !d.scalar(v, list) {
		return "", false
	}
	if slices.Contains(words, v.Value) {
		return v.Value, true
	}
	if near := nearest(v.Value, words); near != "" {
		list = fmt.Sprintf("did you mean %s?", near)
	}
	d.wrongValue(v, list, "is %s", describe(v.Node))
	return "", false
}

func oneOf(words []string) string {
	if len(words) == 1 {
		return words[0]
	}
	return strings.Join(words[:len(words)-1], ", ") + " or " + words[len(words)-1]
}

// boolean reads true or false, and not the other spellings, on which YAML's versions
// differ. It tells which of the two stood there; neither does if it is something else.
func (d *decoder) boolean(v value) (yes, no bool) {
	if !d.scalar(v, "write true or false") {
		return false, false
	}
	if !v.quoted() && (v.Value == "true" || v.Value == "false") {
		return v.Value == "true", v.Value == "false"
	}
	right := "true or false"
	switch strings.ToLower(v.Value) {
	case "true", "yes", "on", "y", "1":
		right = "true"
	case "false", "no", "off", "n", "0":
		right = "false"
	}
	d.wrongValue(v, "write "+right, "is %s", describe(v.Node))
	return false, false
}

var (
	wholeNumber  = regexp.MustCompile(`^(0|[1-9][0-9]*)$`)
	leadingZeros = regexp.MustCompile(`^0+[0-9]+$`)
)

// number reads a whole number in plain digits. What YAML's versions read as several
// numbers, or this one as a float, is refused with the digits that were meant.
func (d *decoder) number(v value, least, most int) (int, bool) {
	example := fmt.Sprintf("write a whole number from %d to %d", least, most)
	if !d.scalar(v, example) {
		return 0, false
	}
	if v.quoted() {
		if right := plainDigits(v.Value); right != "" {
			example = fmt.Sprintf("write %s without quotes", right)
		}
		d.wrongValue(v, example, "is the text %q", shorten(v.Value))
		return 0, false
	}
	if !wholeNumber.MatchString(v.Value) {
		why := ""
		switch right := plainDigits(v.Value); {
		case strings.HasPrefix(v.Value, "-"):
			why = ", below zero"
		case leadingZeros.MatchString(v.Value):
			why, example = ", which some readers take as octal", "write "+right
		case right != "":
			example = "write " + right
		}
		d.wrongValue(v, example, "is %s%s", describe(v.Node), why)
		return 0, false
	}
	n, err := strconv.Atoi(v.Value)
	if err != nil || n < least || n > most {
		d.wrongValue(v, example, "is %s", describe(v.Node))
		return 0, false
	}
	return n, true
}

// plainDigits guesses the whole number that was meant, "" if there is none.
func plainDigits(s string) string {
	const longest = 20 // bounds what a number with an exponent can cost
	s = strings.TrimPrefix(strings.ReplaceAll(strings.TrimSpace(s), "_", ""), "+")
	if leadingZeros.MatchString(s) || wholeNumber.MatchString(s) {
		s = strings.TrimLeft(s, "0")
		if s == "" {
			s = "0"
		}
		return shorten(s)
	}
	if n, err := strconv.ParseInt(s, 0, 64); err == nil && n >= 0 {
		return strconv.FormatInt(n, 10)
	}
	if f, err := strconv.ParseFloat(s, 64); err == nil && f >= 0 && f < 1e15 && len(s) < longest {
		if n, exact := big.NewFloat(f).Int64(); exact == big.Exact {
			return strconv.FormatInt(n, 10)
		}
	}
	return ""
}

var goodDecimal = regexp.MustCompile(`^(0|[1-9][0-9]*)(\.[0-9]+)?$`)

// decimal reads a number in plain digits, with a point or without.
func (d *decoder) decimal(v value, least, most float64) (float64, bool) {
	example := fmt.Sprintf("write a number from %v to %v, such as 1.5", least, most)
	if !d.scalar(v, example) {
		return least, false
	}
	f, err := strconv.ParseFloat(v.Value, 64)
	if v.quoted() || !goodDecimal.MatchString(v.Value) || err != nil || f < least || f > most {
		d.wrongValue(v, example, "is %s", describe(v.Node))
		return least, false
	}
	return f, true
}

var goodPercent = regexp.MustCompile(`^([0-9]{1,3})%$`)

// percent reads a part of the whole, 1% to 100%.
func (d *decoder) percent(v value) (int, bool) {
	const example = "write 1% to 100%, in whole ones"
	if !d.scalar(v, example) {
		return 0, false
	}
	if m := goodPercent.FindStringSubmatch(v.Value); m != nil {
		if n, _ := strconv.Atoi(m[1]); n >= 1 && n <= 100 {
			return n, true
		}
	}
	d.wrongValue(v, example, "is %s", describe(v.Node))
	return 0, false
}
