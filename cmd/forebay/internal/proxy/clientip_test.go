package proxy

import (
	"net/http"
	"testing"
)

var trustedHops = prefixes("127.0.0.0/8", "10.0.0.0/8", "fd00::/8", "::ffff:192.168.0.0/112")

func TestKR01WalkFromTheRight(t *testing.T) {
	for _, c := range []struct {
		name  string
		peer  string
		lines []string
		want  string
	}{
		{"a stranger's header", "203.0.113.9:5000", []string{"6.6.6.6"}, "203.0.113.9"},
		{"no header", "127.0.0.1:5000", nil, "127.0.0.1"},
		{"one hop", "127.0.0.1:5000", []string{"6.6.6.6, 203.0.113.9"}, "203.0.113.9"},
		{"two trusted hops", "127.0.0.1:5000", []string{"6.6.6.6, 203.0.113.9, 10.1.2.3"}, "203.0.113.9"},
		{"two lines", "127.0.0.1:5000", []string{"6.6.6.6", "203.0.113.9, 10.1.2.3"}, "203.0.113.9"},
		{"further lines", "127.0.0.1:5000", []string{"203.0.113.9", "10.0.0.4", "10.1.2.3"}, "203.0.113.9"},
		{"all trusted", "127.0.0.1:5000", []string{"10.0.0.4, 10.1.2.3"}, "10.0.0.4"},
		{"empty entries", "127.0.0.1:5000", []string{", ,203.0.113.9, ,", "", ",\t,"}, "203.0.113.9"},
		{"only empty entries", "127.0.0.1:5000", []string{",,", ""}, "127.0.0.1"},
		{"with a port", "127.0.0.1:5000", []string{"6.6.6.6, 203.0.113.9:4711, 10.0.0.1:80"}, "203.0.113.9"},
		{"bracketed", "127.0.0.1:5000", []string{"6.6.6.6, [2001:db8::1]:4711"}, "2001:db8::1"},
		{"bracketed without a port", "127.0.0.1:5000", []string{"[2001:db8::1]"}, "2001:db8::1"},
		{"past bracketed trusted", "[fd00::1]:5000", []string{"203.0.113.9, [fd00::2]:1"}, "203.0.113.9"},
		{"unknown", "127.0.0.1:5000", []string{"6.6.6.6, unknown"}, "127.0.0.1"},
		{"unknown behind a trusted one", "127.0.0.1:5000", []string{"6.6.6.6, unknown, 10.0.0.7"}, "10.0.0.7"},
		{"garbage at the right end", "127.0.0.1:5000", []string{"203.0.113.9, <script>"}, "127.0.0.1"},
		{"obfuscated", "127.0.0.1:5000", []string{"203.0.113.9, _hidden"}, "127.0.0.1"},
		{"bad port", "127.0.0.1:5000", []string{"203.0.113.9:x"}, "127.0.0.1"},
		{"no port after the colon", "127.0.0.1:5000", []string{"203.0.113.9:"}, "127.0.0.1"},
		{"open bracket", "127.0.0.1:5000", []string{"[2001:db8::1"}, "127.0.0.1"},
		{"bracketed IPv4", "127.0.0.1:5000", []string{"[203.0.113.9]"}, "127.0.0.1"},
		{"octal", "127.0.0.1:5000", []string{"0203.0.113.9"}, "127.0.0.1"},
		{"short form", "127.0.0.1:5000", []string{"203.9"}, "127.0.0.1"},
		{"spaces inside", "127.0.0.1:5000", []string{"203.0.113. 9"}, "127.0.0.1"},
		{"mapped prefix", "192.168.4.4:1", []string{"203.0.113.9"}, "203.0.113.9"},
		{"no address at all", "pipe", []string{"203.0.113.9"}, "invalid IP"},
	} {
		r := &http.Request{RemoteAddr: c.peer, Header: http.Header{}}
		r.Header["X-Forwarded-For"] = c.lines
		if got := ClientIP(r, trustedHops, "").String(); got != c.want {
			t.Errorf("%s: %s said by %s: %s, want %s", c.name, c.lines, c.peer, got, c.want)
		}
	}
}

func TestKR02OtherHeadersAreNotAskedInstead(t *testing.T) {
	for _, name := range []string{"X-Real-Ip", "Forwarded", "Cf-Connecting-Ip", "True-Client-Ip"} {
		r := &http.Request{RemoteAddr: "127.0.0.1:5000", Header: http.Header{name: {"6.6.6.6"}}}
		if name == "Forwarded" {
			r.Header[name] = []string{"for=6.6.6.6"}
		}
		if got := ClientIP(r, trustedHops, "").String(); got != "127.0.0.1" {
			t.Errorf("%s alone: %s, want the peer", name, got)
		}
	}
}

func TestKR04CanonicalForms(t *testing.T) {
	for _, c := range [][2]string{
		{"::ffff:1.2.3.4", "1.2.3.4"},
		{"[::ffff:1.2.3.4]:80", "1.2.3.4"},
		{"::FFFF:102:304", "1.2.3.4"},
		{"fe80::1%eth0", "fe80::1"},
		{"[fe80::1%eth0]:80", "fe80::1"},
		{"2001:DB8:0:0::0001", "2001:db8::1"},
		{"2001:0db8:0000:0000:0000:0000:0000:0001", "2001:db8::1"},
	} {
		r := &http.Request{RemoteAddr: "127.0.0.1:5000", Header: http.Header{"X-Forwarded-For": {c[0]}}}
		if got := ClientIP(r, trustedHops, "").String(); got != c[1] {
			t.Errorf("%s: %s, want %s", c[0], got, c[1])
		}
	}
	for peer, want := range map[string]string{"[::ffff:203.0.113.9]:80": "203.0.113.9", "[fe80::1%eth0]:80": "fe80::1", "[::ffff:10.0.0.1]:80": "1.2.3.4"} {
		r := &http.Request{RemoteAddr: peer, Header: http.Header{"X-Forwarded-For": {"1.2.3.4"}}}
		if got := ClientIP(r, trustedHops, "").String(); got != want {
			t.Errorf("peer %s: %s, want %s", peer, got, want)
		}
	}
}

func FuzzClientIP(f *testing.F) {
	f.Add("203.0.113.9, 10.0.0.1", "[fd00::1]:1,,")
	f.Add("unknown", "]:[,")
	f.Fuzz(func(t *testing.T, a, b string) {
		r := &http.Request{RemoteAddr: "127.0.0.1:1", Header: http.Header{"X-Forwarded-For": {a, b}}}
		got := ClientIP(r, trustedHops, "")
		if !got.IsValid() || got.Zone() != "" || got.Is4In6() {
			t.Errorf("%q, %q: %v", a, b, got)
		}
	})
}
