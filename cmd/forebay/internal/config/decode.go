package config

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

// A decoder turns one file into a Config and collects every mistake on the way. It
// goes on after each: what it could not read keeps its default and is not judged
// again.
type decoder struct {
	file     string // as shown
	dir      string // against which relative paths are meant
	config   *Config
	problems Problems
	flags    bool // no file: file is the flag
	tab      bool // a line with one was reported
	kind     *fileKind
	partial  bool // a part of the file could not be read, so what seems to be missing may be there
}

// fileKind is one kind of files that the decoder reads.
type fileKind struct {
	reference *[]Key // every key there is
	needs     string // at least
}

var (
	configFile   = &fileKind{&reference, "upstream, gates and routes; see docs/config.md"}
	scenarioFile = &fileKind{&scenarioKeys, "routes and clients; see docs/scenarios.md"}
)

func (d *decoder) wrongAt(at Pos, what, remedy string) {
	if at == (Pos{}) && !d.flags && len(d.problems) > 0 {
		return // of a key that was meant, and is misspelt, which is said
	}
	const longest = 400 // a message may hold what the file says, and that may be anything
	line := func(s string) string { return strings.ReplaceAll(clip(s, longest), "\n", " ") }
	d.problems = append(d.problems, Problem{d.file, at.Line, at.Col, line(what), line(remedy)})
}

func (d *decoder) wrong(n *yaml.Node, what, remedy string) { d.wrongAt(posOf(n), what, remedy) }

// wrongKey is wrongAt for a key of the top level, or the flag of that name.
func (d *decoder) wrongKey(key string, at Pos, what, remedy string) {
	if d.flags {
		d.file = "--" + key
	}
	d.wrongAt(at, what, remedy)
}

func posOf(n *yaml.Node) Pos { return Pos{n.Line, n.Column} }

// A key is one key of a mapping with what reads its value.
type key struct {
	name string
	read func(v value)
}

// A value is a node and the path of keys that leads to it.
type value struct {
	*yaml.Node
	path string // "gates.reports.max_wait"
	name string // "max_wait"
}

func (v value) child(name string, n *yaml.Node) value {
	return value{n, strings.TrimPrefix(v.path+"."+name, "."), name}
}

// item is the value in place i of a list.
func (v value) item(i int) value {
	index := fmt.Sprintf("[%d]", i)
	return value{v.Content[i], v.path + index, v.name + index}
}

// wrongValue records a mistake in v, which is shown by its key.
func (d *decoder) wrongValue(v value, remedy, format string, args ...any) {
	d.wrong(v.Node, strings.TrimPrefix(shorten(v.name)+" ", " ")+fmt.Sprintf(format, args...), remedy)
}

// mapping reads a mapping of known keys; level is how docs/config.md calls it:
// "gates.NAME". It returns the places of the keys that are there. What a misspelt one
// was meant to be is there too, without a place, so that nobody misses it as well.
func (d *decoder) mapping(v value, level string, keys []key) map[string]Pos {
	there := map[string]Pos{}
	d.entries(v, level, func(name string, k, child *yaml.Node) {
		i := slices.IndexFunc(keys, func(k key) bool { return k.name == name })
		if i < 0 {
			what, remedy, meant := d.unknownKey(level, v.path, name, keys)
			d.wrong(k, what, remedy)
			if _, ok := there[meant]; !ok && meant != "" {
				there[meant] = Pos{}
			}
			return
		}
		there[name] = posOf(k)
		c := v.child(name, child)
		d.config.at[c.path] = posOf(child)
		if d.given(c) {
			keys[i].read(c)
		}
	})
	return there
}

// entries calls f for every entry of a mapping, each key once.
func (d *decoder) entries(v value, level string, f func(name string, k, child *yaml.Node)) {
	if v.Kind != yaml.MappingNode {
		blanked := d.partial && v.path == ""
		if v.Kind != yaml.AliasNode && !blanked {
			name := v.name
			if name == "" {
				name = "the file"
			}
			d.wrong(v.Node, fmt.Sprintf("%s is %s", shorten(name), describe(v.Node)), mappingRemedy(level))
		}
		return
	}
	first := map[string]int{}
	for i := 0; i+1 < len(v.Content); i += 2 {
		k, child := v.Content[i], v.Content[i+1]
		switch {
		case k.Kind == yaml.AliasNode:
			continue
		case k.Tag == "!!merge":
			d.wrong(k, "a merge key (<<) stands here", "write the keys out")
			continue
		case k.Kind != yaml.ScalarNode:
			d.wrong(k, "the key is "+describe(k), "write a word")
			continue
		case k.Value == "":
			d.wrong(k, "the key is empty", "write a word before the colon")
			continue
		}
		if line, twice := first[k.Value]; twice {
			d.wrong(k, fmt.Sprintf("the key %s is there already, in line %d", k.Value, line), "keep one of the two")
			continue
		}
		first[k.Value] = k.Line
		f(k.Value, k, child)
	}
}

// given tells whether a value is there at all: neither empty nor ~, both of which
// other readers silently take as zero.
func (d *decoder) given(v value) bool {
	if v.Kind == yaml.AliasNode {
		return false // checkTree has said so
	}
	if v.Kind == yaml.ScalarNode && v.Tag == "!!null" {
		if d.partial && v.Value == "" {
			return false // blanked, perhaps
		}
		shown := v.Value
		if shown == "" {
			shown = "empty"
		}
		d.wrongValue(v, "give it a value, or leave the key out", "is %s", shown)
		return false
	}
	return true
}

// list reads a list, each value of it once.
func (d *decoder) list(v value, read func(v value)) {
	if v.Kind != yaml.SequenceNode {
		remedy := "write a list"
		if v.Kind == yaml.ScalarNode {
			remedy = fmt.Sprintf("write [%s]", v.Value)
		}
		d.wrongValue(v, remedy, "is %s", describe(v.Node))
		return
	}
	for i := range v.Content {
		c := v.item(i)
		d.config.at[c.path] = posOf(c.Node)
		if d.given(c) {
			read(c)
		}
	}
}

func mappingRemedy(level string) string {
	if example := mappingExamples[level]; example != "" {
		return "write " + example
	}
	return "write keys with values"
}

var mappingExamples = map[string]string{
	"":                                   "keys with values, such as upstream: http://127.0.0.1:8000",
	"tls":                                "{cert_file: /etc/forebay/server.pem, key_file: /etc/forebay/server.key}",
	"connections":                        "{per_address: 100}",
	"gates.NAME.max_in_flight.aimd":      "{timeout: 1s}",
	"gates.NAME.max_in_flight.vegas":     "{max: 200}",
	"gates.NAME.max_in_flight.gradient2": "{max: 200}",
	"scenario":                           "keys with values, such as clients: {shop: {route: orders, rate: 200}}",
	"resources":                          "{db: {servers: 20}}",
	"resources.NAME":                     "{servers: 20}",
	"routes":                             "{orders: {gate: orders, work: [{at: db, takes: 20ms}]}}",
	"routes.NAME":                        "{gate: orders, work: [{at: db, takes: 20ms}]}",
	"routes.NAME.work[]":                 "{at: db, takes: 20ms}",
	"clients":                            "{shop: {route: orders, rate: 200}}",
	"clients.NAME":                       "{route: orders, rate: 200}",
	"clients.NAME.retries":               "{max: 3, backoff: 100ms}",
	"clients.NAME.bursts":                "{high: 1.75, low: 0.25, mean: 200ms}",
	"takes":                              "a time such as 20ms, or {exponential: 20ms}",
	"admin":                              "an address such as 127.0.0.1:8081, or {listen: ADDRESS, token_file: PATH}",
	"timeouts":                           "{read_header: 5s, idle: 75s, upstream_response: 30s}",
	"pools":                              "{db: 20}",
	"caller":                             "{header: X-Forwarded-For, ipv6_prefix: 64}",
	"deadline":                           "{header: X-Request-Timeout}",
	"retries":                            "{attempt_header: X-Retry-Attempt, key_header: Idempotency-Key}",
	"request_id":                         "{header: X-Request-Id, trust: trusted_proxies}",
	"log":                                "{to: stderr, decisions: refused, remote_ip: truncated}",
	"intake":                             "{max_bytes: 64MiB, read_ahead: 64KiB}",
	"spool":                              "{memory: 64MiB, directory: /var/cache/forebay, disk: 1GiB}",
	"gates":                              "{reports: {max_in_flight: 4}}",
	"gates.NAME":                         "{max_in_flight: 4}",
	"gates.NAME.max_in_flight":           "{auto: {min: 4, max: 200, deadline: 1s}}",
	"gates.NAME.max_in_flight.auto":      "{min: 4, max: 200, deadline: 1s}, or {} for the defaults",
	"gates.NAME.per_caller":              "{max_in_flight: 2, by: address}, or {fair: true}",
	"gates.NAME.per_caller.by":           "address, or {header: X-Company}",
	"gates.NAME.acquire":                 "headers, body, or {body: 256KiB}",
	"gates.NAME.upload":                  "{min_rate: 1KiB, grace: 5s, max_time: 1m}",
	"gates.NAME.streams":                 "{slot: sockets, max_life: 1h, max_idle: 5m}",
	"gates.NAME.refuse":                  "{status: 503, retry_after: {min: 1s, max: 30s}, body: json}",
	"gates.NAME.refuse.body":             "json, problem, or {file: busy.json, type: application/json}",
	"gates.NAME.refuse.headers":          "{X-Served-By: forebay}",
	"gates.NAME.refuse.retry_after":      "{min: 1s, max: 30s}, or a constant such as 10s",
	"gates.NAME.refuse.cors":             "{origins: [https://shop.example]}",
	"lanes":                              "{order-intake: {rank: 1, reserved: 2, share: 50%}}",
	"lanes.NAME":                         "{rank: 1, reserved: 2, share: 50%}",
	"cluster":                            "{redis: redis://127.0.0.1:6379, gates: [reports]}",
	"cluster.tls":                        "{ca_file: /etc/forebay/redis-ca.pem}, or {cert_file: PATH, key_file: PATH}",
	"cluster.gates":                      "[reports], or {reports: {when_store_is_away: closed}}",
	"cluster.gates.NAME":                 "{when_store_is_away: closed}, or {} for the terms of all",
	"routes[]":                           "{match: /reports/, gate: reports}",
}

// describe says what a node is, for a reader who does not know YAML's words.
func describe(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	case yaml.AliasNode:
		return "an alias"
	}
	switch {
	case n.Tag == "!!null":
		return "empty"
	case n.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle) != 0:
		return fmt.Sprintf("the text %q", shorten(n.Value))
	}
	return shorten(n.Value)
}

// shorten keeps a message readable whatever the file holds.
func shorten(s string) string {
	const longest = 60
	return strings.ReplaceAll(clip(s, longest), "\n", " ")
}

func clip(s string, longest int) string {
	if len(s) <= longest {
		return s
	}
	r := []rune(s)
	return string(r[:min(longest, len(r))]) + "…"
}
