package config

import (
	"go.yaml.in/yaml/v4"
)

// Flags are the values of the flags that stand for a file, as given; empty means not
// given. They are read exactly as the file's values are.
type Flags struct {
	Listen      string
	Admin       string
	Upstream    string
	MaxInFlight string
	MaxWait     string
	MaxWaiting  string
}

// DefaultGate is the name of the gate that [FromFlags] makes.
const DefaultGate = "default"

// FromFlags returns the configuration that the flags mean: one gate named "default"
// for every request. Its error is [Problems] in which File is the flag.
func FromFlags(f Flags) (*Config, error) {
	d := newDecoder("")
	d.flags = true
	c := d.config
	g := Gate{}
	g.Name, g.Track, g.MaxInFlight = DefaultGate, true, 1
	gates := gatesReader{decoder: d}
	for _, flag := range []struct {
		name, value string
		missing     string // the remedy; empty: it may be left out
		read        func(v value)
	}{
		{"--upstream", f.Upstream, "say what stands behind: --upstream http://127.0.0.1:8000", d.upstream},
		{"--listen", f.Listen, "", func(v value) { c.Listen.Address = d.address(v, c.Listen.Address, DefaultListen) }},
		{"--admin", f.Admin, "", func(v value) { c.Admin.Address = d.address(v, c.Admin.Address, DefaultAdmin) }},
		{"--max-in-flight", f.MaxInFlight, "no number is safe for a backend that is not known; a pool of 20 connections carries 12 to 16", func(v value) { gates.maxInFlight(v, &g) }},
		{"--max-wait", f.MaxWait, "", func(v value) { d.durationInto(&g.MaxWait, v, 0, "100ms") }},
		{"--max-waiting", f.MaxWaiting, "", func(v value) { gates.maxWaiting(v, &g) }},
	} {
		d.file = flag.name
		switch {
		case flag.value != "":
			flag.read(flagValue(flag.value))
		case flag.missing != "":
			d.wrongAt(Pos{}, "it is missing", flag.missing)
		}
	}
	if f.MaxWaiting != "" && g.MaxWait == 0 && len(d.problems) == 0 {
		d.wrongKey("max-waiting", Pos{}, "it is given without --max-wait, so nobody may wait", "add --max-wait 100ms, or leave it out")
	}
	d.checkAddresses()
	if len(d.problems) > 0 {
		return nil, d.flagProblems()
	}
	c.Gates = []Gate{g}
	c.Routes = []Route{{Match: "/", Gates: []string{DefaultGate}}}
	return c, nil
}

// flagValue is a flag's text as the parser would give it.
func flagValue(s string) value {
	return value{Node: &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: s}}
}

// flagProblems returns the problems without places, which flags have not.
func (d *decoder) flagProblems() Problems {
	for i := range d.problems {
		d.problems[i].Line, d.problems[i].Col = 0, 0
	}
	return d.problems.sorted()
}
