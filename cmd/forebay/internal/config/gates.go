package config

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"example.com/forebay"
	"go.yaml.in/yaml/v4"
)

// gatesReader reads the gates and remembers every name, also of gates that are
// wrong, so that a route to one of them is not called a mistake as well.
type gatesReader struct {
	*decoder
	names []string
	pools []value // that gates name

	streamsTo []streamsTo
}

func (r *gatesReader) read(v value) {
	n := 0
	r.entries(v, "gates", func(name string, k, child *yaml.Node) {
		n++
		r.names = append(r.names, name)
		c := v.child(name, child)
		r.config.at[c.path] = posOf(k)
		if n == maxGates+1 {
			r.wrong(k, fmt.Sprintf("there are more than %d gates, each with metrics of its own", maxGates), "let several routes share one")
		}
		if !r.name(k, "gate") || !r.given(c) || n > maxGates {
			return
		}
		r.gate(c, name, posOf(k))
	})
	if v.Kind == yaml.MappingNode && n == 0 && !r.partial {
		r.wrongValue(v, "name at least one: {default: {max_in_flight: 16}}", "has no gate")
	}
}

var goodName = regexp.MustCompile(`^[A-Za-z0-9_./:-]{1,64}$`)

// name checks a name that stands in metrics and logs.
func (d *decoder) name(k *yaml.Node, what string) bool {
	switch {
	case k.Tag != "!!str":
		d.wrong(k, fmt.Sprintf("%s is no name for a %s: YAML takes it for something other than text", shorten(k.Value), what), "put it in quotes, or take a word")
	case !goodName.MatchString(k.Value):
		d.wrong(k, fmt.Sprintf("%q is no name for a %s", shorten(k.Value), what), "write 1 to 64 letters, digits and any of - _ . / :")
	default:
		return true
	}
	return false
}

func (r *gatesReader) gate(v value, name string, at Pos) {
	g := Gate{Pos: at, Config: forebay.Config{Name: name, Track: true}}
	before, mayWait := len(r.problems), true
	there := r.mapping(v, "gates.NAME", []key{
		{"max_in_flight", func(v value) { r.maxInFlight(v, &g) }},
		{"max_wait", func(v value) {
			n, ok := r.duration(v, 0, longest, "100ms")
			g.MaxWait, mayWait = n, !ok || n > 0
		}},
		{"max_waiting", func(v value) { r.maxWaiting(v, &g) }},
		{"pool", func(v value) {
			if s, ok := r.text(v, "the name of a pool"); ok {
				g.Pool = s
				r.pools = append(r.pools, v)
			}
		}},
		{"per_caller", func(v value) { r.perCaller(v, &g.PerCaller) }},
		{"hold", func(v value) { r.hold(v, &g) }},
		{"streams", func(v value) { r.streams(v, &g) }},
		{"acquire", func(v value) { r.acquire(v, &g.Upload) }},
		{"upload", func(v value) { r.upload(v, &g.Upload) }},
		{"refuse", func(v value) { r.refuse(v, &g) }},
	})
	if _, ok := there["max_in_flight"]; !ok && v.Kind == yaml.MappingNode && !r.partial {
		r.wrongAt(at, fmt.Sprintf("the gate %s has no max_in_flight, and no number is safe for a backend that is not known", shorten(name)), "write max_in_flight: NUMBER; a pool of 20 connections carries 12 to 16")
	}
	_, waitGiven := there["max_wait"]
	if at, ok := there["max_waiting"]; ok && g.MaxWaiting > 0 && !(waitGiven && mayWait) && !r.partial {
		r.wrongAt(at, "max_waiting is given without max_wait, so nobody may wait", "set max_wait as well, such as 100ms, or leave max_waiting out")
	}
	// Whatever the library minds and nothing above does has to be found here, not
	// when the gate is made.
	if len(r.problems) == before {
		if _, err := forebay.New(g.Config); err != nil {
			r.wrongAt(at, "the gate cannot be made: "+strings.ReplaceAll(err.Error(), "\n", ", "), "correct it")
		}
	}
	r.config.Gates = append(r.config.Gates, g)
}

// maxInFlight reads the limit. 0 is refused, because to some it means closed and to
// others no limit.
func (r *gatesReader) maxInFlight(v value, g *Gate) {
	g.MaxInFlight = 1
	switch {
	case v.Kind == yaml.MappingNode || v.Kind == yaml.ScalarNode && v.Value == autoWord:
		r.auto(v, g)
	case v.Kind == yaml.ScalarNode && v.Value == "closed":
		g.Closed = true
	case v.Kind == yaml.ScalarNode && !v.quoted() && v.Value == "0":
		r.wrongValue(v, "write closed to refuse everybody, or a number from 1", "is 0, which could mean closed or no limit")
	case v.Kind == yaml.ScalarNode && slices.Contains([]string{"unlimited", "none", "inf", ".inf", "infinity"}, strings.ToLower(v.Value)):
		r.wrongValue(v, "write a number, or give its routes exempt: true", "is %s, and a gate without a limit is none", v.Value)
	case v.Kind == yaml.ScalarNode && v.Tag == "!!str" && !v.quoted() && limitWord(v.Value) != "":
		r.wrongValue(v, fmt.Sprintf("did you mean %s?", limitWord(v.Value)), "is %s", shorten(v.Value))
	default:
		if n, ok := r.number(v, 1, maxUnits); ok {
			g.MaxInFlight = n
		}
	}
}

// limitWord returns the word that was meant in place of a limit, "" if it is anybody's
// guess.
func limitWord(s string) string {
	if slices.Contains(otherAutoWords, strings.ToLower(s)) {
		return autoWord
	}
	return nearest(s, []string{"closed", autoWord})
}

func (r *gatesReader) maxWaiting(v value, g *Gate) {
	if v.Kind == yaml.ScalarNode && v.Value == "0" && !v.quoted() {
		r.wrongValue(v, "leave max_wait out to refuse at once, or max_waiting for as many as leave within max_wait", "is 0, a line that nobody can join")
		return
	}
	g.MaxWaiting, _ = r.number(v, 1, maxUnits)
}

// refuse reads what a refusal looks like.
func (r *gatesReader) refuse(v value, g *Gate) {
	f := &g.Refusal
	r.mapping(v, "gates.NAME.refuse", []key{
		{"status", func(v value) { f.Status, _ = r.number(v, 400, 599) }},
		{"retry_after", func(v value) { r.retryAfter(v, &f.RetryAfter) }},
		{"body", func(v value) { r.refusalBody(v, g) }},
		{"headers", func(v value) { r.refusalHeaders(v, f) }},
		{"hide", func(v value) { r.refusalHides(v, f) }},
		{"cors", func(v value) { r.cors(v, &f.CORS) }},
	})
}

// retryAfter reads bounds, or a constant.
func (r *gatesReader) retryAfter(v value, ra *forebay.RetryAfter) {
	if v.Kind == yaml.ScalarNode {
		r.seconds(&ra.Fixed, v, "10s")
		return
	}
	there := r.mapping(v, "gates.NAME.refuse.retry_after", []key{
		{"min", func(v value) { r.seconds(&ra.Min, v, "1s") }},
		{"max", func(v value) { r.seconds(&ra.Max, v, "30s") }},
	})
	if len(there) == 0 && v.Kind == yaml.MappingNode && len(v.Content) == 0 {
		r.wrongValue(v, "write "+mappingExamples["gates.NAME.refuse.retry_after"], "is empty")
	}
	if ra.Max > 0 && ra.Max < ra.Min {
		at := r.config.at[v.path+".max"]
		r.wrongAt(at, fmt.Sprintf("max is %s, below min, which is %s", FormatDuration(ra.Max), FormatDuration(ra.Min)), "write a max of at least "+FormatDuration(ra.Min))
	}
}

// seconds reads a Retry-After, which the protocol has in whole seconds only.
func (r *gatesReader) seconds(t *time.Duration, v value, example string) {
	n, ok := r.duration(v, time.Second, longest, example)
	if !ok {
		return
	}
	if n%time.Second != 0 {
		up := n.Truncate(time.Second) + time.Second
		r.wrongValue(v, fmt.Sprintf("write %s", FormatDuration(up)), "is %s, and Retry-After is whole seconds", v.Value)
		return
	}
	*t = n
}

// checkPools finds pools that gates name and nobody has declared.
func (r *gatesReader) checkPools() {
	if r.partial {
		return
	}
	known := slices.Sorted(maps.Keys(r.config.Pools))
	for _, v := range r.pools {
		if _, ok := r.config.Pools[v.Value]; ok {
			continue
		}
		remedy := fmt.Sprintf("declare it: pools: {%s: SIZE}", shorten(v.Value))
		if near := r.nearest(v.Value, known); near != "" {
			remedy = fmt.Sprintf("did you mean %s?", near)
		}
		r.wrong(v.Node, fmt.Sprintf("there is no pool %s", shorten(v.Value)), remedy)
	}
}

// leaves returns the single errors that a joined one is made of.
func leaves(err error) []error {
	var joined interface{ Unwrap() []error }
	if err == nil || !errors.As(err, &joined) {
		return []error{err}
	}
	var all []error
	for _, e := range joined.Unwrap() {
		all = append(all, leaves(e)...)
	}
	return all
}
