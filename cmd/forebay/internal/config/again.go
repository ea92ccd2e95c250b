package config

import (
	"fmt"
	"strings"

	"go.yaml.in/yaml/v4"
)

// headerInto reads the name of a header that says something of a request.
func (d *decoder) headerInto(to *string, example string) func(v value) {
	return func(v value) {
		if h, ok := d.header(v, example); ok {
			*to = h
		}
	}
}

// deadline reads how callers say how long they wait.
func (d *decoder) deadline(v value) {
	there := d.mapping(v, "deadline", []key{{"header", d.headerInto(&d.config.Deadline.Header, "X-Request-Timeout")}})
	d.wantSome(v, "deadline", there)
}

// retries reads how requests say that they come again.
func (d *decoder) retries(v value) {
	r := &d.config.Retries
	there := d.mapping(v, "retries", []key{
		{"attempt_header", d.headerInto(&r.AttemptHeader, "X-Retry-Attempt")},
		{"key_header", d.headerInto(&r.KeyHeader, "Idempotency-Key")},
	})
	d.wantSome(v, "retries", there)
	if r.AttemptHeader != "" && r.AttemptHeader == r.KeyHeader {
		d.wrongAt(d.config.at[v.path+".key_header"], fmt.Sprintf("key_header is %s, and so is attempt_header: one header cannot say both", r.KeyHeader), "give each its own, or leave one out")
		r.KeyHeader = ""
	}
}

// wantSome finds a mapping that says nothing.
func (d *decoder) wantSome(v value, level string, there map[string]Pos) {
	if len(there) == 0 && v.Kind == yaml.MappingNode && len(v.Content) == 0 {
		d.wrongValue(v, "write "+mappingExamples[level]+", or leave it out", "is empty")
	}
}

// againYAML writes deadline and retries.
func (c *Config) againYAML(line func(format string, args ...any)) {
	if c.Deadline.Header != "" {
		line("deadline: {header: %s}", quote(c.Deadline.Header))
	}
	var parts []string
	if h := c.Retries.AttemptHeader; h != "" {
		parts = append(parts, "attempt_header: "+quote(h))
	}
	if h := c.Retries.KeyHeader; h != "" {
		parts = append(parts, "key_header: "+quote(h))
	}
	if len(parts) > 0 {
		line("retries: {%s}", strings.Join(parts, ", "))
	}
}

// againKeys say what callers tell of a request: how long they wait, and that it comes
// again.
var againKeys = []Key{
	{"deadline.header", "the name of a header in which a caller says how long it waits: a number of seconds, 2.5, or one with the unit ms, s, m or h, 1500ms. Whoever has waited so long in line is refused, and work at the upstream ends with it, answered 504. What cannot be read, 0, and 24h and more are ignored. It is taken from everybody: it only ever shortens what is done for the request", "none; calls of gRPC say it in grpc-timeout, which always counts",
		"no name is common to all, and some count milliseconds", "", "X-Request-Timeout"},
	{"retries.attempt_header", "the name of a header in which a caller says how often it has tried before: above 0 the request comes again. While others wait it goes one lane below that of its route. Not one that is 1 in a first attempt, as Envoy's x-envoy-attempt-count is", "none",
		"no name is common to all. It is taken from everybody: whoever claims it only steps back. It does something at gates with lanes", "", "X-Retry-Attempt"},
	{"retries.key_header", "the name of a header with a key that all attempts at one thing have in common, of up to 256 bytes: a request comes again if one of the same caller's address with the same key was refused within the last minute", "none",
		"an attempt that says nothing of the others can be told so. 16,384 keys are remembered for one minute at least, as numbers of which nobody can make the key again; with more refusals than that for less",
		"", "Idempotency-Key"},
}
