package forebay

import (
	"net/netip"
	"strings"
)

// appendHost appends the form in which hosts are compared: without port, final
// dot and brackets, in lower case, an IPv6 address in its canonical form.
func appendHost(dst []byte, host string) []byte {
	if end := strings.IndexByte(host, ']'); end > 0 && host[0] == '[' {
		host = host[1:end]
	} else if i := strings.IndexByte(host, ':'); i >= 0 && strings.IndexByte(host[i+1:], ':') < 0 {
		host = host[:i]
	}
	host = strings.TrimSuffix(host, ".")
	if strings.IndexByte(host, ':') >= 0 {
		if addr, err := netip.ParseAddr(host); err == nil {
			return addr.AppendTo(dst)
		}
	}
	for i := range len(host) {
		c := host[i]
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		dst = append(dst, c)
	}
	return dst
}

// showHost writes a host in normal form as a pattern has it.
func showHost(host string) string {
	if strings.Contains(host, ":") {
		return "[" + host + "]"
	}
	return host
}

func isHostName(host string) bool {
	for label := range strings.SplitSeq(host, ".") {
		if label == "" || strings.ContainsFunc(label, notHostRune) {
			return false
		}
	}
	return true
}

// notHostRune allows the underscore: it is in no host name by the book, but in
// many that container networks resolve.
func notHostRune(r rune) bool {
	return !(isAlphanumeric(r) || r == '-' || r == '_')
}

func isIPv6(host string) bool {
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.Is6() && addr.Zone() == ""
}
