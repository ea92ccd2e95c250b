package forebay

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// CORS lets web pages of other origins read refusals; without it a browser shows the
// page a network error and keeps status and Retry-After from it. It says nothing about
// answers that are no refusals: those are the application's. The zero value lets
// nobody. Where a layer in front of the gate has set Access-Control-Allow-Origin
// already, that stands.
type CORS struct {
	// Origins are those of the pages, as browsers write them: https://shop.example,
	// with a port if it is not the usual one; or "*" alone for all. None is ever
	// reflected that is not here.
	Origins []string
	// Credentials lets pages read refusals of requests that carry cookies. It does not
	// go together with "*".
	Credentials bool
}

// Header values of CORS that every refusal shares.
var (
	headerAnyOrigin   = []string{"*"}
	headerExposed     = []string{"Retry-After, X-Request-Id"}
	headerCredentials = []string{"true"}
)

func (c *CORS) validate() (errs []error) {
	if slices.Contains(c.Origins, "*") {
		if len(c.Origins) > 1 {
			errs = append(errs, errors.New(`forebay: Refusal.CORS.Origins has "*" and others; "*" stands alone`))
		}
		if c.Credentials {
			errs = append(errs, errors.New(`forebay: Refusal.CORS has Credentials and the origin "*"; browsers refuse that, name the origins`))
		}
		return errs
	}
	for _, o := range c.Origins {
		if !isOrigin(o) {
			errs = append(errs, fmt.Errorf("forebay: Refusal.CORS.Origins has %q; it must be an origin such as https://shop.example, in small letters and without a path, or \"*\"", o))
		}
	}
	if c.Credentials && len(c.Origins) == 0 {
		errs = append(errs, errors.New("forebay: Refusal.CORS has Credentials without Origins; name the origins"))
	}
	return errs
}

// isOrigin reports whether s is one as a browser sends it.
func isOrigin(s string) bool {
	u, err := url.Parse(s)
	return err == nil && u.Scheme != "" && u.Hostname() != "" && s == u.Scheme+"://"+u.Host && s == strings.ToLower(s) &&
		!strings.HasSuffix(s, ":") && isFieldValue(s)
}

// allow adds what a page of the request's origin needs to read the answer.
func (c *CORS) allow(h http.Header, r *http.Request) {
	const allowed = "Access-Control-Allow-Origin"
	if len(c.Origins) == 0 || len(h[allowed]) > 0 {
		return
	}
	if c.Origins[0] == "*" {
		h[allowed] = headerAnyOrigin
		h["Access-Control-Expose-Headers"] = headerExposed
		return
	}
	h.Add("Vary", "Origin") // also to those who send none: what they get must not be kept for those who do
	origin := r.Header["Origin"]
	if len(origin) != 1 || !slices.Contains(c.Origins, origin[0]) {
		return
	}
	h[allowed] = origin[:1:1]
	h["Access-Control-Expose-Headers"] = headerExposed
	if c.Credentials {
		h["Access-Control-Allow-Credentials"] = headerCredentials
	}
}

// IsPreflight reports whether a browser asks if it may send a request at all. Who
// refuses that, or lets it wait, refuses a request that was never sent, with an error
// that the page cannot read; and it costs next to nothing. The handlers of this package
// let preflights pass; who calls [Gate.Acquire] does so before. A plain OPTIONS is a
// request like any other.
func IsPreflight(r *http.Request) bool {
	return r.Method == http.MethodOptions && len(r.Header["Origin"]) > 0 && len(r.Header["Access-Control-Request-Method"]) > 0
}
