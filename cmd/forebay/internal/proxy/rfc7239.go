package proxy

import (
	"net/netip"
	"strings"
)

// hops reads a line of a Forwarded header: whom each of its elements is for, in order,
// not valid where an element names nobody that has an address. It is read from the
// left, as a quote that a client has left open would otherwise swallow what the proxy
// behind it has said: such a line is none, and ok is false.
func hops(line string) (all []netip.Addr, ok bool) {
	for line != "" {
		hop, isEmpty, rest, ok := element(line)
		if !ok {
			return nil, false
		}
		if !isEmpty {
			all = append(all, hop)
		}
		line = rest
	}
	return all, true
}

// element reads one element: pairs with semicolons between them, up to a comma or the
// end.
func element(line string) (hop netip.Addr, isEmpty bool, rest string, ok bool) {
	named := false
	for isEmpty = true; ; line = line[1:] {
		line = strings.TrimLeft(line, " \t")
		if line != "" && line[0] != ';' && line[0] != ',' {
			name, value, behind, ok := pair(line)
			isFor := strings.EqualFold(name, "for")
			if !ok || isFor && named { // two callers in one are none
				return hop, false, "", false
			}
			if isFor {
				named = true
				hop, _ = parseHop(value)
			}
			isEmpty, line = false, strings.TrimLeft(behind, " \t")
		}
		switch {
		case line == "":
			return hop, isEmpty, "", true
		case line[0] == ',':
			return hop, isEmpty, line[1:], true
		case line[0] != ';':
			return hop, false, "", false
		}
	}
}

// pair reads token=value, where the value is a token or stands in quotes.
func pair(line string) (name, value, rest string, ok bool) {
	n := tokenLength(line)
	if n == 0 || n == len(line) || line[n] != '=' {
		return "", "", "", false
	}
	name, line = line[:n], line[n+1:]
	if !strings.HasPrefix(line, `"`) {
		// Many write an address with its port, or in brackets, without the quotes that the
		// RFC asks for.
		n = strings.IndexAny(line, "\",; \t\\")
		if n < 0 {
			n = len(line)
		}
		return name, line[:n], line[n:], n > 0
	}
	value, rest, ok = quoted(line[1:])
	return name, value, rest, ok
}

// quoted reads up to the closing quote.
func quoted(line string) (value, rest string, ok bool) {
	if n := strings.IndexAny(line, `"\`); n >= 0 && line[n] == '"' {
		return line[:n], line[n+1:], true
	}
	var b strings.Builder
	for i := 0; i < len(line); i++ {
		switch line[i] {
		case '"':
			return b.String(), line[i+1:], true
		case '\\':
			if i++; i == len(line) {
				return "", "", false
			}
		}
		b.WriteByte(line[i])
	}
	return "", "", false
}

// tokenLength returns how many characters of a token s begins with.
func tokenLength(s string) int {
	n := 0
	for n < len(s) && (isAlnum(s[n]) || strings.IndexByte("!#$%&'*+-.^_`|~", s[n]) >= 0) {
		n++
	}
	return n
}

func isAlnum(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
}

// walkForwarded is walk for the lines of Forwarded. A proxy adds a line of its own or
// adds to the last one, so each line stands for itself.
func walkForwarded(reporter netip.Addr, lines []string, trusted []netip.Prefix) netip.Addr {
	for i := len(lines) - 1; i >= 0; i-- {
		all, ok := hops(lines[i])
		if !ok {
			return reporter
		}
		for n := len(all) - 1; n >= 0; n-- {
			if !all[n].IsValid() {
				return reporter
			}
			if reporter = all[n]; !trusts(trusted, reporter) {
				return reporter
			}
		}
	}
	return reporter
}
