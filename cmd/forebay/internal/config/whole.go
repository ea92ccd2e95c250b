package config

import (
	"time"

	"go.yaml.in/yaml/v4"
)

const (
	longest        = 24 * time.Hour // bounds every duration, as the library does
	shortest       = time.Millisecond
	maxDiscardTime = time.Minute // as the library does
	maxUnits       = 1<<20 - 1   // what a gate can count
	maxGates       = 1000        // each has metrics of its own
	maxRoutes      = 2000        // each pair is compared when the file is read
	maxPattern     = 1024        // what takes long to read is no pattern
)

// whole reads a file and then what its parts say about each other.
func (d *decoder) whole(root value) {
	c := d.config
	gates := gatesReader{decoder: d}
	lanes := lanesReader{decoder: d}
	routes := routesReader{decoder: d, gates: &gates, lanes: &lanes}
	shared := clusterReader{decoder: d, gates: &gates}
	there := d.mapping(root, "", []key{
		{"listen", func(v value) { c.Listen.Address = d.address(v, c.Listen.Address, "127.0.0.1:8080") }},
		{"tls", d.tls},
		{"connections", d.connections},
		{"admin", d.admin},
		{"upstream", d.upstream},
		{"transport", func(v value) {
			if w, ok := d.word(v, "lean", "standard"); ok {
				c.Transport = w
			}
		}},
		{"server", func(v value) {
			if w, ok := d.word(v, "lean", "standard"); ok {
				c.Server = w
			}
		}},
		{"drain_timeout", func(v value) { d.durationInto(&c.DrainTimeout, v, 0, "30s") }},
		{"timeouts", d.timeouts},
		{"front_timeout", func(v value) { d.durationInto(&c.FrontTimeout, v, shortest, "60s") }},
		{"pools", d.pools},
		{"trusted_proxies", d.trustedProxies},
		{"proxy_protocol", func(v value) { c.ProxyProtocol, _ = d.boolean(v) }},
		{"caller", d.caller},
		{"deadline", d.deadline},
		{"retries", d.retries},
		{"request_id", d.requestID},
		{"log", d.log},
		{"intake", d.intake},
		{"spool", d.spool},
		{"gates", gates.read},
		{"lanes", lanes.read},
		{"cluster", shared.read},
		{"routes", routes.read},
	})
	for _, missing := range []struct{ name, remedy string }{
		{"upstream", "say what stands behind: upstream: http://127.0.0.1:8000"},
		{"gates", "name at least one: gates: {default: {max_in_flight: 16}}"},
		{"routes", "send requests to gates: routes: [{match: /, gate: NAME}]"},
	} {
		if _, ok := there[missing.name]; !ok && !d.partial && root.Kind == yaml.MappingNode {
			d.wrong(root.Node, missing.name+" is missing", missing.remedy)
		}
	}
	gates.checkPools()
	d.prefixCallers()
	gates.checkStreams()
	shared.check()
	gates.checkShared()
	routes.check(there["routes"])
	lanes.give()
	d.checkAddresses()
	d.checkProxyProtocol()
}

func (d *decoder) durationInto(t *time.Duration, v value, least time.Duration, example string) {
	if n, ok := d.duration(v, least, longest, example); ok {
		*t = n
	}
}

func (d *decoder) timeouts(v value) {
	t := &d.config.Timeouts
	d.mapping(v, "timeouts", []key{
		{"read_header", func(v value) { d.durationInto(&t.ReadHeader, v, shortest, "5s") }},
		{"idle", func(v value) { d.durationInto(&t.Idle, v, shortest, "75s") }},
		{"write", func(v value) { d.durationInto(&t.Write, v, shortest, "30s") }},
		{"upstream_response", func(v value) { d.durationInto(&t.UpstreamResponse, v, shortest, "30s") }},
		{"still_running", func(v value) { d.durationInto(&t.StillRunning, v, 0, "5m") }},
	})
}

func (d *decoder) pools(v value) {
	d.config.Pools = map[string]int{}
	d.entries(v, "pools", func(name string, k, child *yaml.Node) {
		c := v.child(name, child)
		d.config.at[c.path] = posOf(child)
		if !d.given(c) || !d.name(k, "pool") {
			return
		}
		n, _ := d.number(c, 1, maxUnits) // a wrong size still makes the name known
		d.config.Pools[name] = n
	})
}

func (d *decoder) caller(v value) {
	c := &d.config.Caller
	d.mapping(v, "caller", []key{
		{"header", func(v value) {
			if w, ok := d.word(v, "X-Forwarded-For", "Forwarded"); ok {
				c.Header = w
			}
		}},
		{"ipv6_prefix", func(v value) {
			if n, ok := d.number(v, 32, 128); ok {
				c.IPv6Prefix = n
			}
		}},
	})
}

// checkProxyProtocol finds a PROXY header that nobody may send.
func (d *decoder) checkProxyProtocol() {
	if d.config.ProxyProtocol && len(d.config.TrustedProxies) == 0 && !d.partial {
		d.wrongKey("proxy_protocol", d.config.at["proxy_protocol"],
			"proxy_protocol is true and trusted_proxies is empty, so nobody's PROXY header is taken", "write trusted_proxies: [ADDRESS], with that of what stands in front")
	}
}

func (d *decoder) requestID(v value) {
	r := &d.config.RequestID
	d.mapping(v, "request_id", []key{
		{"header", func(v value) {
			if h, ok := d.header(v, "X-Request-Id"); ok {
				r.Header = h
			}
		}},
		{"trust", func(v value) {
			if t, ok := d.word(v, string(TrustProxies), string(TrustEverybody), string(TrustNobody)); ok {
				r.Trust = Trust(t)
			}
		}},
	})
}

func (d *decoder) log(v value) {
	l := &d.config.Log
	var size, keep value
	toBad := false
	wordInto := func(s *string, v value, words ...string) {
		if w, ok := d.word(v, words...); ok {
			*s = w
		}
	}
	d.mapping(v, "log", []key{
		{"to", func(v value) { toBad = !d.logTo(v) }},
		{"decisions", func(v value) { wordInto(&l.Decisions, v, "refused", "all", "off") }},
		{"remote_ip", func(v value) { wordInto(&l.RemoteIP, v, "truncated", "full", "hashed", "off") }},
		{"max_size", func(v value) { size = v; l.MaxSize, _ = d.size(v, 1<<20, 1<<40) }},
		{"keep", func(v value) { keep = v; l.Keep, _ = d.number(v, 1, 1000) }},
	})
	switch {
	case toBad:
		return
	case l.To != "stderr" && l.To != "syslog":
		if size.Node == nil {
			l.MaxSize = DefaultMaxSize
		}
		if keep.Node == nil {
			l.Keep = DefaultKeep
		}
		return
	}
	for _, v := range []value{size, keep} {
		if v.Node != nil {
			d.wrongValue(v, "set to: PATH as well, or leave it out", "is given, but the log goes to %s, which is no file of ours", l.To)
		}
	}
}
