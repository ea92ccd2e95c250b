package config

import (
	"fmt"
	"net/http"
	"slices"

	"go.yaml.in/yaml/v4"

	"example.com/forebay"
)

// perCaller reads how much of a gate one caller may have.
func (r *gatesReader) perCaller(v value, p *forebay.PerCaller) {
	before := len(r.problems)
	there := r.mapping(v, "gates.NAME.per_caller", []key{
		{"max_in_flight", func(v value) { p.MaxInFlight, _ = r.number(v, 1, maxUnits) }},
		{"fair", func(v value) { p.Fair, _ = r.boolean(v) }},
		{"by", func(v value) { r.callersBy(v, p) }},
		{"max_callers", func(v value) { p.MaxCallers, _ = r.number(v, 1, maxUnits) }},
		{"status", func(v value) { p.Status, _ = r.number(v, 400, 599) }},
	})
	_, bounds := there["max_in_flight"]
	_, fair := there["fair"]
	if !(bounds || fair && p.Fair) && len(r.problems) == before && v.Kind == yaml.MappingNode && !r.partial {
		r.wrongValue(v, "write max_in_flight: NUMBER; half of the gate's leaves the other half to the others", "has no max_in_flight and is not fair, so it does nothing")
	}
	if len(r.problems) > before { // what is half there is not judged again
		*p = forebay.PerCaller{}
	}
}

// callersBy reads what callers are told apart by.
func (r *gatesReader) callersBy(v value, p *forebay.PerCaller) {
	const forms = "write address, or {header: NAME} for one that a trusted proxy sets"
	switch {
	case v.Kind == yaml.ScalarNode && v.Value == "address":
	case v.Kind != yaml.MappingNode:
		r.wrongValue(v, forms, "is %s", describe(v.Node))
	default:
		there := r.mapping(v, "gates.NAME.per_caller.by", []key{{"header", func(v value) { r.callerHeader(v, p) }}})
		if len(there) == 0 && len(v.Content) == 0 {
			r.wrongValue(v, forms, "is empty")
		}
	}
}

// callerHeader reads the name of a header that says who calls.
func (r *gatesReader) callerHeader(v value, p *forebay.PerCaller) {
	s, ok := r.text(v, "X-Company")
	if !ok {
		return
	}
	name := http.CanonicalHeaderKey(s)
	switch {
	case !headerName.MatchString(s):
		r.wrongValue(v, "write a name such as X-Company", "is %q, no name of a header", shorten(s))
	case name == "Authorization" || name == "Cookie":
		r.wrongValue(v, "have what stands in front name the caller in a header of its own, such as X-Company", "is %s, which callers make up as they like", name)
	case slices.Contains(notForIDs, name):
		r.wrongValue(v, "write a name such as X-Company", "is %s, which says something else", name)
	default:
		p.Header = name
	}
}

// CallerHeaders are the headers by which gates tell callers apart.
func (c *Config) CallerHeaders() (names []string) {
	for _, g := range c.Gates {
		if h := g.PerCaller.Header; h != "" && !slices.Contains(names, h) {
			names = append(names, h)
		}
	}
	return names
}

// prefixCallers tells each gate how much of an IPv6 address is one caller.
func (d *decoder) prefixCallers() {
	for i := range d.config.Gates {
		if p := &d.config.Gates[i].PerCaller; p.MaxInFlight > 0 || p.Fair {
			p.IPv6Prefix = d.config.Caller.IPv6Prefix
		}
	}
}

func perCallerYAML(p forebay.PerCaller) string {
	s := "by: address"
	if p.Header != "" {
		s = fmt.Sprintf("by: {header: %s}", quote(p.Header))
	}
	if p.Fair {
		s = "fair: true, " + s
	}
	if p.MaxInFlight > 0 {
		s = fmt.Sprintf("max_in_flight: %d, ", p.MaxInFlight) + s
	}
	if p.MaxCallers > 0 {
		s += fmt.Sprintf(", max_callers: %d", p.MaxCallers)
	}
	if p.Status > 0 {
		s += fmt.Sprintf(", status: %d", p.Status)
	}
	return s
}
