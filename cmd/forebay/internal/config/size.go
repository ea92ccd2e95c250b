package config

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

var goodSize = regexp.MustCompile(`^([1-9][0-9]{0,9})(KiB|MiB|GiB)$`)

// size reads a number of bytes.
func (d *decoder) size(v value, least, most int64) (int64, bool) {
	if !d.scalar(v, "write a size such as 64MiB") {
		return 0, false
	}
	m := goodSize.FindStringSubmatch(v.Value)
	if m == nil {
		remedy := "write digits and a unit (KiB, MiB, GiB), such as 64MiB"
		if l := looseDuration.FindStringSubmatch(strings.TrimSpace(v.Value)); l != nil && wholeNumber.MatchString(l[1]) {
			if unit := map[string]string{"k": "KiB", "m": "MiB", "g": "GiB"}[strings.ToLower(l[2])[:1]]; unit != "" {
				remedy = "write " + l[1] + unit
			}
		}
		d.wrongValue(v, remedy, "is %s", describe(v.Node))
		return 0, false
	}
	n, _ := strconv.ParseInt(m[1], 10, 64)
	n <<= map[string]int{"KiB": 10, "MiB": 20, "GiB": 30}[m[2]]
	if n < least || n > most {
		d.wrongValue(v, fmt.Sprintf("write %s to %s", sizeText(least), sizeText(most)), "is %s", v.Value)
		return 0, false
	}
	return n, true
}

func sizeText(n int64) string {
	switch {
	case n%(1<<30) == 0:
		return strconv.FormatInt(n>>30, 10) + "GiB"
	case n%(1<<20) == 0:
		return strconv.FormatInt(n>>20, 10) + "MiB"
	}
	return strconv.FormatInt(n>>10, 10) + "KiB"
}
