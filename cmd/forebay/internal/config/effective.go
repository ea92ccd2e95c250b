package config

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"example.com/forebay"
)

// YAML returns the configuration in force as a file: every value in one form,
// defaults filled in. [Parse] reads it back as the same configuration.
func (c *Config) YAML() string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("listen: %s", quote(c.Listen.Address))
	if c.TLS != nil {
		line("tls: {cert_file: %s, key_file: %s}", quote(c.TLS.CertFile), quote(c.TLS.KeyFile))
	}
	if parts := c.Connections.yaml(); parts != "" {
		line("connections: {%s}", parts)
	}
	if c.Admin.TokenFile == "" {
		line("admin: %s", quote(c.Admin.Address))
	} else {
		line("admin: {listen: %s, token_file: %s}", quote(c.Admin.Address), quote(c.Admin.TokenFile))
	}
	upstream := c.Upstream.String()
	if c.Upstream.Scheme == "unix" {
		upstream = "unix:" + c.Upstream.Path
	}
	line("upstream: %s\ntransport: %s\nserver: %s", quote(upstream), c.Transport, c.Server)
	line("drain_timeout: %s", FormatDuration(c.DrainTimeout))
	line("timeouts: {read_header: %s, idle: %s, write: %s, upstream_response: %s, still_running: %s}",
		FormatDuration(c.Timeouts.ReadHeader), FormatDuration(c.Timeouts.Idle), FormatDuration(c.Timeouts.Write), FormatDuration(c.Timeouts.UpstreamResponse), FormatDuration(c.Timeouts.StillRunning))
	c.aroundYAML(line)
	line("caller: {header: %s, ipv6_prefix: %d}", c.Caller.Header, c.Caller.IPv6Prefix)
	c.againYAML(line)
	line("request_id: {header: %s, trust: %s}", quote(c.RequestID.Header), c.RequestID.Trust)
	line("log: {%s}", c.Log.yaml())
	line("intake: {%s}", c.Intake)
	line("spool: {%s}", c.Spool.yaml())
	line("gates:")
	for _, g := range c.Gates {
		line("  %s: {%s}", quote(g.Name), g.yaml())
	}
	for _, l := range c.lanesYAML() {
		line("%s", l)
	}
	if c.Cluster != nil {
		line("cluster: {%s}", c.clusterYAML())
	}
	line("routes:")
	for _, r := range c.Routes {
		line("  - {%s}", r.yaml())
	}
	return b.String()
}

// aroundYAML writes what stands in front and behind.
func (c *Config) aroundYAML(line func(format string, args ...any)) {
	if c.FrontTimeout > 0 {
		line("front_timeout: %s", FormatDuration(c.FrontTimeout))
	}
	if len(c.Pools) > 0 {
		line("pools:")
		for _, name := range slices.Sorted(maps.Keys(c.Pools)) {
			line("  %s: %d", quote(name), c.Pools[name])
		}
	}
	if len(c.TrustedProxies) > 0 {
		line("trusted_proxies:")
		for _, p := range c.TrustedProxies {
			line("  - %s", quote(p.String()))
		}
	}
	if c.ProxyProtocol {
		line("proxy_protocol: true")
	}
}

func (c Connections) yaml() string {
	var parts []string
	if c.Max > 0 {
		parts = append(parts, fmt.Sprintf("max: %d", c.Max))
	}
	if c.PerAddress > 0 {
		parts = append(parts, fmt.Sprintf("per_address: %d", c.PerAddress))
	}
	return strings.Join(parts, ", ")
}

func (l Log) yaml() string {
	s := fmt.Sprintf("to: %s, decisions: %s, remote_ip: %s", quote(l.To), l.Decisions, l.RemoteIP)
	if l.MaxSize > 0 {
		s += fmt.Sprintf(", max_size: %s, keep: %d", sizeText(l.MaxSize), l.Keep)
	}
	return s
}

func (g Gate) yaml() string {
	limit := strconv.Itoa(g.MaxInFlight)
	switch {
	case g.Closed:
		limit = "closed"
	case g.Auto != nil:
		limit = g.Auto.yaml()
	}
	parts := []string{"max_in_flight: " + limit, "max_wait: " + FormatDuration(g.MaxWait)}
	if g.MaxWaiting > 0 {
		parts = append(parts, fmt.Sprintf("max_waiting: %d", g.MaxWaiting))
	}
	if g.Pool != "" {
		parts = append(parts, "pool: "+quote(g.Pool))
	}
	if g.PerCaller != (forebay.PerCaller{}) {
		parts = append(parts, "per_caller: {"+perCallerYAML(g.PerCaller)+"}")
	}
	parts = append(parts, g.holdYAML()...)
	parts = append(parts, g.uploadYAML()...)
	if refuse := g.refuseYAML(); refuse != "" {
		parts = append(parts, "refuse: {"+refuse+"}")
	}
	return strings.Join(parts, ", ")
}

func (g Gate) refuseYAML() string {
	var parts []string
	if g.Refusal.Status > 0 {
		parts = append(parts, fmt.Sprintf("status: %d", g.Refusal.Status))
	}
	ra := g.Refusal.RetryAfter
	var bounds []string
	for _, bound := range []struct {
		name  string
		value time.Duration
	}{{"min", ra.Min}, {"max", ra.Max}} {
		if bound.value > 0 {
			bounds = append(bounds, bound.name+": "+FormatDuration(bound.value))
		}
	}
	switch {
	case ra.Fixed > 0:
		parts = append(parts, "retry_after: "+FormatDuration(ra.Fixed))
	case len(bounds) > 0:
		parts = append(parts, "retry_after: {"+strings.Join(bounds, ", ")+"}")
	}
	parts = append(parts, g.refusalYAML()...)
	if len(g.Refusal.CORS.Origins) > 0 {
		parts = append(parts, "cors: {"+corsYAML(g.Refusal.CORS)+"}")
	}
	return strings.Join(parts, ", ")
}

func (r Route) yaml() string {
	s := "match: " + quote(r.Match)
	names := make([]string, len(r.Gates))
	for i, name := range r.Gates {
		names[i] = quote(name)
	}
	switch {
	case r.Answer != "":
		return s + ", answer: " + r.Answer
	case len(names) == 0:
		return s + ", exempt: true"
	case len(names) == 1:
		s += ", gate: " + names[0]
	default:
		s += ", gates: [" + strings.Join(names, ", ") + "]"
	}
	if r.Cost > 0 {
		s += fmt.Sprintf(", cost: %d", r.Cost)
	}
	if r.Lane != "" {
		s += ", lane: " + quote(r.Lane)
	}
	return s
}

// plain is what YAML reads as text without quotes, whatever its version; words that
// some version takes for a truth value or nothing are not in it.
var plain = regexp.MustCompile(`^[A-Za-z/][A-Za-z0-9_/.-]*(:[/A-Za-z0-9][A-Za-z0-9_/.:-]*)?$`)

func quote(s string) string {
	switch strings.ToLower(s) {
	case "y", "n", "yes", "no", "on", "off", "true", "false", "null":
		return strconv.Quote(s)
	}
	if plain.MatchString(s) && !strings.HasSuffix(s, ":") {
		return s
	}
	return strconv.Quote(s)
}
