package config

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"example.com/forebay"
	"go.yaml.in/yaml/v4"
)

const maxRefusalBody = 64 << 10 // as the library has it

// refusalBody reads which body a refusal has: one of ours, or that of a file.
func (r *gatesReader) refusalBody(v value, g *Gate) {
	if v.Kind == yaml.ScalarNode {
		w, _ := r.word(v, "json", "problem")
		g.Refusal.Problem = w == "problem"
		return
	}
	before := len(r.problems)
	var body, kind string
	there := r.mapping(v, "gates.NAME.refuse.body", []key{
		{"file", func(v value) {
			if path, ok := r.text(v, "a path such as /etc/forebay/busy.json"); ok {
				text, _ := r.fileNamed(v, maxRefusalBody, "write the body into it, at most 64KiB")
				g.RefusalFile, body = path, string(text)
			}
		}},
		{"type", func(v value) { kind, _ = r.text(v, "a type such as application/json") }},
	})
	if _, ok := there["file"]; !ok && v.Kind == yaml.MappingNode && !r.partial {
		r.wrongValue(v, "write {file: busy.json}, or json, or problem", "names no file")
	}
	if len(r.problems) == before {
		g.Refusal.Body, g.Refusal.ContentType = body, kind
		r.tryRefusal(v, forebay.Refusal{Body: body, ContentType: kind}, "correct the file or its type; docs/config.md says what is filled in")
		return
	}
	g.RefusalFile = ""
}

// refusalHeaders reads what is sent with every refusal.
func (r *gatesReader) refusalHeaders(v value, f *forebay.Refusal) {
	r.entries(v, "gates.NAME.refuse.headers", func(name string, k, child *yaml.Node) {
		c := v.child(name, child)
		if !r.given(c) {
			return
		}
		text, ok := r.text(c, "the value of a header")
		if !ok {
			return
		}
		name = http.CanonicalHeaderKey(name)
		one := forebay.Refusal{Headers: http.Header{name: {text}}}
		if !r.tryRefusal(value{k, c.path, "headers"}, one, "correct the name or the value, or leave it out") {
			return
		}
		if f.Headers == nil {
			f.Headers = http.Header{}
		}
		f.Headers[name] = append(f.Headers[name], text)
	})
}

// tryRefusal tells whether a refusal can be like that, as the library sees it.
func (r *gatesReader) tryRefusal(v value, f forebay.Refusal, remedy string) bool {
	_, err := forebay.New(forebay.Config{MaxInFlight: 1, Refusal: f})
	if err != nil {
		said := strings.ReplaceAll(err.Error(), "\n", ", ")
		r.wrongValue(v, remedy, "cannot be used: %s", strings.TrimPrefix(said, "forebay: "))
	}
	return err == nil
}

// refusalHides reads what a refusal does not tell.
func (r *gatesReader) refusalHides(v value, f *forebay.Refusal) {
	r.list(v, func(v value) {
		switch w, _ := r.word(v, "gate", "reason"); w {
		case "gate":
			f.HideGate = true
		case "reason":
			f.HideReason = true
		}
	})
}

func (g Gate) refusalYAML() (parts []string) {
	f := g.Refusal
	switch {
	case g.RefusalFile != "" && f.ContentType != "":
		parts = append(parts, fmt.Sprintf("body: {file: %s, type: %s}", quote(g.RefusalFile), quote(f.ContentType)))
	case g.RefusalFile != "":
		parts = append(parts, fmt.Sprintf("body: {file: %s}", quote(g.RefusalFile)))
	case f.Problem:
		parts = append(parts, "body: problem")
	}
	var headers, hidden []string
	for _, name := range slices.Sorted(maps.Keys(f.Headers)) {
		headers = append(headers, quote(name)+": "+quote(f.Headers[name][0]))
	}
	if len(headers) > 0 {
		parts = append(parts, "headers: {"+strings.Join(headers, ", ")+"}")
	}
	if f.HideGate {
		hidden = append(hidden, "gate")
	}
	if f.HideReason {
		hidden = append(hidden, "reason")
	}
	if len(hidden) > 0 {
		parts = append(parts, "hide: ["+strings.Join(hidden, ", ")+"]")
	}
	return parts
}

// refusalKeys say what a refusal looks like, beyond the built-in ones.
var refusalKeys = []Key{
	{"gates.NAME.refuse.body.file", "a path, relative ones from the file's directory; its content, at most 64 KiB, is what everybody gets in place of the built-in bodies. {status}, {title}, {error}, {reason}, {gate}, {request_id} and {retry_after} are filled in", "none",
		"clients that know another shape can keep it. It is read with the configuration, so a reload takes a new one", "", "testdata/busy.json"},
	{"gates.NAME.refuse.body.type", "the media type of the file; what says that it is JSON has to be valid with everything filled in", "application/json",
		"clients of an API read JSON", "", "application/json"},
	{"gates.NAME.refuse.headers", "a mapping from names to values that are sent with every refusal; those that a refusal sets itself cannot be among them", "none",
		"a refusal needs no more than it has", "", "{X-Served-By: forebay}"},
	{"gates.NAME.refuse.hide", "a list of gate and reason: what the answer does not tell", "none: both are told",
		"whoever is refused can say by what, which shortens every call to support; they name nothing but what you named", "", "[gate]"},
}
