package check

import (
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"example.com/forebay"
	"example.com/forebay/cmd/forebay/internal/config"
)

// groupsOf builds the routes alone, around gates of which only the names and lanes count.
func groupsOf(c *config.Config, routes ...config.Route) (*forebay.Groups, error) {
	gates := map[string]*forebay.Gate{}
	for _, g := range c.Gates {
		gate, err := forebay.New(forebay.Config{Name: g.Name, MaxInFlight: g.MaxInFlight, Lanes: g.Lanes})
		if err != nil {
			return nil, err
		}
		gates[g.Name] = gate
	}
	part := config.Config{Routes: routes}
	return part.Groups(func(name string) *forebay.Gate { return gates[name] })
}

// routesNeverMatched: a route is dead when others take all that it matches, and when
// no request can look like it.
func (c *checker) routesNeverMatched() {
	groups, err := groupsOf(c.Config, c.Routes...)
	if err != nil {
		return // config refuses such files
	}
	const deepEnough = 64 // bounds what one long pattern can cost
	deepest := 0
	for _, r := range c.Routes {
		deepest = min(deepEnough, max(deepest, strings.Count(r.Match, "/")))
	}
	for i, r := range c.Routes {
		if !slices.ContainsFunc(probes(r.Match, deepest), func(p *http.Request) bool { return groups.Lookup(p).Route == r.Match }) {
			c.find(Error, "route_never_matches", fmt.Sprintf("routes[%d].match", i), "no request can get to the route %s: %s", r.Match, whyNever(r.Match))
		}
	}
}

func whyNever(match string) string {
	if strings.HasPrefix(match, "CONNECT ") {
		return "CONNECT names no path, and no tunnel is opened; take it out"
	}
	return "routes that are more specific take all of them; take it out, or one of those"
}

var wildcard = regexp.MustCompile(`\{[^{}/]*\}`)

// probes returns one request for every shape that a pattern matches. Its wildcards are
// filled with what no literal equals, so each probe meets as few other patterns as a
// request of its shape can: if another pattern takes it, that takes them all.
func probes(match string, deepest int) []*http.Request {
	const fresh = "forebay-probe"
	method, rest := "FOREBAYPROBE", match
	if before, after, found := strings.Cut(match, " "); found {
		method, rest = before, after
	}
	slash := strings.IndexByte(rest, '/')
	if slash < 0 {
		return nil
	}
	host, path := rest[:slash], rest[slash:]
	if host == "" {
		host = "forebay-probe.invalid"
	}
	open := strings.HasSuffix(path, "/")
	path = wildcard.ReplaceAllStringFunc(path, func(name string) string {
		switch {
		case name == "{$}":
			return ""
		case strings.HasSuffix(name, "...}"):
			open = true
			return ""
		}
		return fresh
	})
	paths := []string{path}
	for range deepest + 1 {
		if !open {
			break
		}
		path += fresh
		paths = append(paths, path, path+"/")
		path += "/"
	}
	var all []*http.Request
	for _, p := range paths {
		if u, err := url.ParseRequestURI(p); err == nil && method != http.MethodConnect {
			all = append(all, &http.Request{Method: method, Host: host, URL: u, Header: http.Header{}})
		}
	}
	if method == http.MethodConnect { // has a host and no path
		all = append(all, &http.Request{Method: method, Host: host, URL: &url.URL{Host: host}, Header: http.Header{}})
	}
	return all
}

// healthWords are the last parts of paths by which machines ask how a server is.
var healthWords = []string{"health", "healthz", "healthcheck", "health_check", "ready", "readyz", "readiness",
	"live", "livez", "liveness", "ping", "up", "heartbeat"}

// healthGated: a health check that waits in line fails when the line is full, and
// takes out a server that only has enough to do.
func (c *checker) healthGated() {
	for i, r := range c.Routes {
		path := strings.TrimSuffix(strings.TrimSuffix(r.Match, "{$}"), "/")
		last := strings.ToLower(path[strings.LastIndexByte(path, '/')+1:])
		if len(r.Gates) > 0 && slices.Contains(healthWords, last) {
			c.find(Warning, "health_gated", fmt.Sprintf("routes[%d].match", i), "the health check %s stands in the line of gate %s, and fails when that is full; write exempt: true, or answer: health", r.Match, r.Gates[0])
		}
	}
}

// adminOpen: the token is all that keeps strangers out, and it travels in the clear.
func (c *checker) adminOpen() {
	if config.Loopback(c.Admin.Address) {
		return
	}
	const shortest = 16
	switch {
	case c.Admin.Token == "":
		c.find(Error, "admin_open", "admin", "admin at %s is open to strangers; give it a token_file, or listen on 127.0.0.1", c.Admin.Address)
	case len(c.Admin.Token) < shortest:
		c.find(Warning, "admin_token", "admin.token_file", "the admin token has %d characters and can be guessed; take at least %d random ones", len(c.Admin.Token), shortest)
	}
	c.find(Unknown, "admin_network", "admin", "admin at %s is reached from other machines without TLS; whether somebody can listen on the way is not written here", c.Admin.Address)
}

// trust: addresses that are taken from headers are only as good as who sets them.
func (c *checker) trust() {
	for i, p := range c.TrustedProxies {
		if p.Bits() == 0 {
			c.find(Warning, "trust_everybody", fmt.Sprintf("trusted_proxies[%d]", i), "trusted_proxies has %s, which is everybody: callers choose their own address; name the proxies in front", p)
		}
	}
	if c.FrontTimeout > 0 && len(c.TrustedProxies) == 0 && !strings.HasPrefix(c.Listen.Address, "unix:") {
		c.find(Warning, "trust_nobody", "front_timeout", "front_timeout says that something stands in front, but trusted_proxies is empty: every caller has the address of the front; write trusted_proxies: [ADDRESS]")
	}
	if len(c.TrustedProxies) == 0 && c.At("caller.header") != (config.Pos{}) {
		c.find(Warning, "caller_unread", "caller.header", "caller.header is %s, but trusted_proxies is empty, so it is read from nobody; write trusted_proxies: [ADDRESS]", c.Caller.Header)
	}
	if c.Connections.PerAddress > 0 && c.FrontTimeout > 0 && len(c.TrustedProxies) == 0 {
		c.find(Error, "connections_one", "connections.per_address", "connections.per_address is %d, but trusted_proxies is empty and something stands in front: all its connections are of one address; write trusted_proxies: [ADDRESS]", c.Connections.PerAddress)
	}
	for _, g := range c.Gates {
		c.perCaller(&g)
	}
	if c.RequestID.Trust == config.TrustEverybody {
		c.find(Warning, "trust_ids", "request_id.trust", "request_id.trust is everybody: callers can make log lines look like other people's; write trusted_proxies")
	}
}

// perCaller: a bound for each caller is only as good as what tells them apart.
func (c *checker) perCaller(g *config.Gate) {
	p := g.PerCaller
	switch {
	case p.MaxInFlight == 0:
		return
	case p.Header != "" && len(c.TrustedProxies) == 0:
		c.find(Warning, "caller_unread", gateKey(g.Name, "per_caller.by.header"), "gate %s tells callers apart by %s, but trusted_proxies is empty, so it is read from nobody, and all count by address; write trusted_proxies: [ADDRESS]", g.Name, p.Header)
	case c.FrontTimeout > 0 && len(c.TrustedProxies) == 0:
		c.find(Error, "caller_one", gateKey(g.Name, "per_caller"), "gate %s bounds each caller, but trusted_proxies is empty and something stands in front: all callers are one; write trusted_proxies: [ADDRESS]", g.Name)
	}
	if !g.Closed && g.Auto == nil && p.MaxInFlight >= g.MaxInFlight {
		c.find(Warning, "caller_unbound", gateKey(g.Name, "per_caller.max_in_flight"), "per_caller.max_in_flight %d of gate %s is not below its max_in_flight %d, and bounds nothing; write %d", p.MaxInFlight, g.Name, g.MaxInFlight, max(1, g.MaxInFlight/2))
	}
}
