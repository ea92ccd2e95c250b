package config

import (
	"fmt"
	"slices"
	"strings"

	"example.com/forebay"
	"go.yaml.in/yaml/v4"
)

const (
	everyOrigin   = "*"
	exampleOrigin = "https://shop.example"
)

// cors reads which pages of other origins may read refusals.
func (r *gatesReader) cors(v value, c *forebay.CORS) {
	before := len(r.problems)
	there := r.mapping(v, "gates.NAME.refuse.cors", []key{
		{"origins", func(v value) { r.list(v, func(v value) { r.origin(v, c) }) }},
		{"credentials", func(v value) { c.Credentials, _ = r.boolean(v) }},
	})
	switch {
	case len(r.problems) > before || v.Kind != yaml.MappingNode || r.partial:
	case len(c.Origins) == 0:
		r.wrongValue(v, "write origins: ["+exampleOrigin+"], or leave cors out", "names no origins, so no page may read a refusal")
	case c.Origins[0] == everyOrigin && c.Credentials:
		r.wrongAt(there["credentials"], "credentials is true for every origin, which browsers refuse", "name the origins, or leave credentials out")
	default:
		return
	}
	*c = forebay.CORS{} // the gate is looked at without it
}

// origin reads one of those that a page can come from.
func (r *gatesReader) origin(v value, c *forebay.CORS) {
	s, ok := r.text(v, "an origin such as "+exampleOrigin+", or '*' for every one")
	if !ok {
		return
	}
	alone := forebay.Config{MaxInFlight: 1, Refusal: forebay.Refusal{CORS: forebay.CORS{Origins: []string{s}}}}
	if _, err := forebay.New(alone); err != nil {
		r.wrongValue(v, "write it as browsers do, such as "+exampleOrigin+", in small letters and without a path", "is %s, no origin", shorten(s))
		return
	}
	c.Origins = append(c.Origins, s)
	if len(c.Origins) > 1 && slices.Contains(c.Origins, everyOrigin) {
		r.wrongValue(v, "leave the others out, or '*'", "stands beside '*', which is every origin")
	}
}

func corsYAML(c forebay.CORS) string {
	origins := make([]string, len(c.Origins))
	for i, o := range c.Origins {
		origins[i] = quote(o)
	}
	s := fmt.Sprintf("origins: [%s]", strings.Join(origins, ", "))
	if c.Credentials {
		s += ", credentials: true"
	}
	return s
}

// corsKeys say which pages may read refusals.
var corsKeys = []Key{
	{"gates.NAME.refuse.cors.origins", "a list of origins as browsers write them, or '*' alone for every one: the pages that may read refusals, with their Retry-After", "none",
		"browsers hide an answer from pages of other origins unless it names them. It is for refusals alone: of its own answers the application says it", "", "[" + exampleOrigin + "]"},
	{"gates.NAME.refuse.cors.credentials", "true or false: whether that holds for requests with cookies too; not with '*'", "false",
		"a page that sends none needs it not", "", "true"},
}
