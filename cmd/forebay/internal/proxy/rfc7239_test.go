package proxy

import (
	"net/http"
	"testing"
)

// TestKR01WalkThroughForwarded: as through X-Forwarded-For, whatever a client has left
// open in it.
func TestKR01WalkThroughForwarded(t *testing.T) {
	for _, c := range []struct {
		name  string
		peer  string
		lines []string
		want  string
	}{
		{"a stranger's header", "203.0.113.9:5000", []string{"for=6.6.6.6"}, "203.0.113.9"},
		{"no header", "127.0.0.1:5000", nil, "127.0.0.1"},
		{"one hop", "127.0.0.1:5000", []string{"for=6.6.6.6, for=203.0.113.9;proto=https"}, "203.0.113.9"},
		{"two trusted hops", "127.0.0.1:5000", []string{"for=6.6.6.6,for=203.0.113.9 , FOR=10.1.2.3"}, "203.0.113.9"},
		{"two lines", "127.0.0.1:5000", []string{"for=6.6.6.6", "for=203.0.113.9, for=10.1.2.3"}, "203.0.113.9"},
		{"all trusted", "127.0.0.1:5000", []string{"for=10.0.0.4, for=10.1.2.3"}, "10.0.0.4"},
		{"IPv6", "127.0.0.1:5000", []string{`proto=http;for="[2001:db8::1]:4711";by=10.0.0.1`}, "2001:db8::1"},
		{"escaped", "127.0.0.1:5000", []string{`for="203.0.113\.9"`}, "203.0.113.9"},
		{"without quotes", "127.0.0.1:5000", []string{"for=203.0.113.9:4711, for=[fd00::1]:80"}, "203.0.113.9"},
		{"empty elements", "127.0.0.1:5000", []string{" , for=203.0.113.9;, ;;, ", "", ","}, "203.0.113.9"},
		{"names nobody", "127.0.0.1:5000", []string{"for=6.6.6.6, proto=https"}, "127.0.0.1"},
		{"unknown", "127.0.0.1:5000", []string{"for=6.6.6.6, for=unknown, for=10.0.0.7"}, "10.0.0.7"},
		{"obfuscated", "127.0.0.1:5000", []string{"for=6.6.6.6, for=_hidden"}, "127.0.0.1"},
		{"twice", "127.0.0.1:5000", []string{"for=6.6.6.6;for=203.0.113.9"}, "127.0.0.1"},
		{"an open quote", "127.0.0.1:5000", []string{`for=6.6.6.6;x=", for=203.0.113.9`}, "127.0.0.1"},
		{"an open quote meets another", "127.0.0.1:5000", []string{`for=6.6.6.6;x=", for="[2001:db8::1]"`}, "127.0.0.1"},
		{"an escaped one", "127.0.0.1:5000", []string{`for=6.6.6.6;x="\", for="[2001:db8::1]"`}, "127.0.0.1"},
		{"an open quote in a line of its own", "127.0.0.1:5000", []string{`for=6.6.6.6;x="`, "for=203.0.113.9"}, "203.0.113.9"},
		{"and a line before", "127.0.0.1:5000", []string{"for=7.7.7.7", `for=6.6.6.6;x=", for=203.0.113.9`}, "127.0.0.1"},
		{"and all trusted before", "127.0.0.1:5000", []string{`for=6.6.6.6;x="`, "for=10.0.0.3"}, "10.0.0.3"},
		{"a comma in quotes", "127.0.0.1:5000", []string{`for="6.6.6.6, for=7.7.7.7"`}, "127.0.0.1"},
		{"no pair", "127.0.0.1:5000", []string{"203.0.113.9"}, "127.0.0.1"},
		{"another header", "127.0.0.1:5000", nil, "127.0.0.1"},
	} {
		r := &http.Request{RemoteAddr: c.peer, Header: http.Header{"X-Forwarded-For": {"6.6.6.6"}, "Forwarded": c.lines}}
		if got := ClientIP(r, trustedHops, "Forwarded").String(); got != c.want {
			t.Errorf("%s: %q said by %s: %s, want %s", c.name, c.lines, c.peer, got, c.want)
		}
	}
}

// TestForwardedIsTheOneThatIsRead: then X-Forwarded-For may be the client's own, and is
// made anew for the upstream.
func TestForwardedIsTheOneThatIsRead(t *testing.T) {
	noLeaks(t)
	u := newRaw(t, ok)
	g := inFront(t, u.url, func(c *Config) { trust("127.0.0.1/32", "10.0.0.0/8")(c); c.CallerHeader = "Forwarded" })
	own := `for=127.0.0.1;host="shop.example:8443";proto=http`
	for _, c := range []struct{ said, chain, wantSaid, wantChain, from string }{
		{"for=203.0.113.7", "6.6.6.6", "for=203.0.113.7, " + own, "203.0.113.7, 127.0.0.1", "203.0.113.7:0"},
		{`for="[2001:db8::1]:80", for=unknown`, "", `for="[2001:db8::1]:80", for=unknown, ` + own, "2001:db8::1, unknown, 127.0.0.1", ""},
		{"for=203.0.113.7, for=10.0.0.9", "6.6.6.6, 203.0.113.7, 10.0.0.9", "for=203.0.113.7, for=10.0.0.9, " + own, "6.6.6.6, 203.0.113.7, 10.0.0.9, 127.0.0.1", "203.0.113.7:0"},
		{`for=6.6.6.6;x="`, "6.6.6.6", own, "127.0.0.1", ""},
		{"", "6.6.6.6", own, "127.0.0.1", ""},
	} {
		head := send(g, u, get1("Forwarded: "+c.said, "X-Forwarded-For: "+c.chain))
		if said, chain := field(head, "Forwarded"), field(head, "X-Forwarded-For"); said != c.wantSaid || chain != c.wantChain {
			t.Errorf("%q, %q: the upstream is told %q and %q, want %q and %q", c.said, c.chain, said, chain, c.wantSaid, c.wantChain)
		}
		if from := g.result().Request.RemoteAddr; c.from != "" && from != c.from {
			t.Errorf("%q: the gates see %q, want %q", c.said, from, c.from)
		}
	}
}

// FuzzForwarded: whatever stands there already, what a trusted proxy adds to it counts
// or nothing does; a line of its own counts in any case.
func FuzzForwarded(f *testing.F) {
	for _, said := range []string{"for=6.6.6.6", `for="6.6.6.6`, `for="[2001:db8::1]:80";by=x`, `x="\`, `;,;=,"`, "for=10.0.0.1"} {
		f.Add(said, "for=1.1.1.1")
	}
	f.Fuzz(func(t *testing.T, said, before string) {
		for own, want := range map[string]string{"for=203.0.113.9;proto=http": "203.0.113.9", `host="a,b";for="[2001:db8::9]:1"`: "2001:db8::9"} {
			from := func(lines ...string) string {
				r := &http.Request{RemoteAddr: "127.0.0.1:1", Header: http.Header{"Forwarded": lines}}
				return ClientIP(r, trustedHops, "Forwarded").String()
			}
			if got := from(before, said+", "+own); got != want && got != "127.0.0.1" {
				t.Errorf("%q, %q: %s, want %s or the peer", said, own, got, want)
			}
			if got := from(before, said, own); got != want {
				t.Errorf("%q and %q: %s, want %s", said, own, got, want)
			}
		}
		r := &http.Request{RemoteAddr: "127.0.0.1:1", Header: http.Header{"X-Forwarded-For": {before, said + ", 203.0.113.9"}}}
		if got := ClientIP(r, trustedHops, "").String(); got != "203.0.113.9" {
			t.Errorf("X-Forwarded-For %q: %s", said, got)
		}
		all, ok := hops(said)
		again, okAgain := hops(join(all, "for=", node))
		if ok != okAgain && ok || len(again) != len(all) {
			t.Errorf("%q: %v was written as what is read as %v", said, all, again)
		}
	})
}
