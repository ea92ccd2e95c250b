package forebay

import (
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// The built-in bodies, as templates: see [Refusal.Body] for what stands in braces.
const (
	templateHTML = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>{status} {title}</title>
<h1>{title}</h1>
<p>%s</p>
<p><small>%s{request_id}</small></p>
</html>
`
	textBusy     = "The server is busy. Please try again in {retry_after} seconds."
	textCaller   = "You have too many requests under way. Please try again in {retry_after} seconds."
	textTooLarge = "The request is too large. Trying again will not help."
)

// page is what a gate's refusals for one reason look like, made once.
type page struct {
	status      int
	proxyStatus []string
	json        body
	problem     body
	html        body
	grpc        []string // the message
}

// newPage returns the page of a refusal. With a body of the gate's own everybody is
// given that one.
func newPage(gate string, d Decision, c *Config) page {
	p, f := page{status: d.Status()}, &c.Refusal
	if f.Status != 0 && d != RejectedTooLarge && d != RejectedCaller {
		p.status = f.Status
	}
	if c.PerCaller.Status != 0 && d == RejectedCaller {
		p.status = c.PerCaller.Status
	}
	reason := d.String()
	if f.HideGate {
		gate = ""
	}
	if f.HideReason {
		reason = ""
	}
	told := strings.TrimSpace(gate + " " + reason)
	p.proxyStatus = []string{"forebay; error=" + proxyError(d)}
	if told != "" {
		p.proxyStatus[0] += `; details="` + told + `"`
	}
	p.grpc = []string{strings.TrimSuffix(strings.ReplaceAll(errorCode(d), "_", " ")+": "+told, ": ")}
	known := strings.NewReplacer(
		"{status}", strconv.Itoa(p.status), "{title}", http.StatusText(p.status), "{error}", errorCode(d),
		"{reason}", reason, "{gate}", gate)
	if f.Body != "" {
		own := newBody(f.contentType(), known.Replace(f.Body))
		p.json, p.problem, p.html = own, own, own
		return p
	}
	fields := jsonFields(gate, reason)
	p.json = newBody("application/json", known.Replace(`{"error":"{error}",`+fields+`"requestId":"{request_id}"}`))
	p.problem = newBody("application/problem+json", known.Replace(
		`{"type":"about:blank","title":"{title}","status":{status},"error":"{error}",`+fields+`"requestId":"{request_id}"}`))
	text := textBusy
	switch d {
	case RejectedCaller:
		text = textCaller
	case RejectedTooLarge:
		text = textTooLarge
	}
	if told != "" {
		told += ", "
	}
	p.html = newBody("text/html; charset=utf-8", known.Replace(fmt.Sprintf(templateHTML, text, told)))
	if f.Problem {
		p.json, p.html = p.problem, p.problem
	}
	return p
}

// bodyFor chooses what the client reads best.
func (p *page) bodyFor(r *http.Request) *body {
	switch formatFor(r.Header["Accept"]) {
	case formatProblem:
		return &p.problem
	case formatHTML:
		return &p.html
	}
	return &p.json
}

// jsonFields are those that can be hidden. What they hold needs no escape.
func jsonFields(gate, reason string) (fields string) {
	if reason != "" {
		fields += `"reason":"` + reason + `",`
	}
	if gate != "" {
		fields += `"gate":"` + gate + `",`
	}
	return fields
}

func errorCode(d Decision) string {
	switch d {
	case RejectedCaller:
		return "caller_busy"
	case RejectedTooLarge:
		return "too_large"
	}
	return "server_busy"
}

// proxyError is the error type of RFC 9209 for a decision.
func proxyError(d Decision) string {
	if d == RejectedTooLarge || d == RejectedCaller {
		return "http_request_denied"
	}
	return "connection_limit_reached"
}

// body is a template of which only the request's own is left open. What goes in can
// stand in JSON and HTML as it is.
type body struct {
	contentType []string
	parts       []bodyPart
	size        int // of what is fixed
}

// bodyPart is a text and what follows it.
type bodyPart struct {
	text string
	open blank
}

// blank is what each refusal fills in for itself.
type blank uint8

const (
	openNothing blank = iota
	openRequestID
	openRetryAfter
)

func newBody(contentType, template string) body {
	b := body{contentType: []string{contentType}}
	for template != "" {
		part := bodyPart{text: template}
		template = ""
		id, retry := strings.Index(part.text, "{request_id}"), strings.Index(part.text, "{retry_after}")
		switch {
		case id >= 0 && (retry < 0 || id < retry):
			part.text, template = part.text[:id], part.text[id+len("{request_id}"):]
			part.open = openRequestID
		case retry >= 0:
			part.text, template = part.text[:retry], part.text[retry+len("{retry_after}"):]
			part.open = openRetryAfter
		}
		b.parts = append(b.parts, part)
		b.size += len(part.text)
	}
	return b
}

// fill appends the body of one refusal. retry is 0 where waiting does not help.
func (b *body) fill(buf []byte, id string, retry int) []byte {
	const digits = 8 // of the longest Retry-After
	buf = slices.Grow(buf, b.size+len(b.parts)*max(len(id), digits))
	for i := range b.parts {
		buf = append(buf, b.parts[i].text...)
		switch b.parts[i].open {
		case openRequestID:
			buf = append(buf, id...)
		case openRetryAfter:
			buf = strconv.AppendInt(buf, int64(retry), 10)
		}
	}
	return buf
}

const maxBody = 64 << 10 // of a gate's own refusals: a page, not a site

// contentType is that of the gate's own body.
func (f *Refusal) contentType() string {
	if f.ContentType == "" {
		return "application/json"
	}
	return f.ContentType
}

// validateBody checks a gate's own body.
func (f *Refusal) validateBody() (errs []error) {
	wrong := func(format string, args ...any) { errs = append(errs, fmt.Errorf("forebay: Refusal."+format, args...)) }
	if f.Body == "" {
		if f.ContentType != "" {
			wrong("ContentType is %q without a Body; leave it out, or give the Body", f.ContentType)
		}
		return errs
	}
	if f.Problem {
		errs = append(errs, errors.New("forebay: Refusal has a Body and Problem; give one of them"))
	}
	if len(f.Body) > maxBody {
		wrong("Body has %d bytes; it must be at most %d", len(f.Body), maxBody)
	}
	media, _, err := mime.ParseMediaType(f.contentType())
	if err != nil || !strings.Contains(media, "/") || !isFieldValue(f.ContentType) {
		wrong("ContentType is %q; it must be a media type such as text/html; charset=utf-8", f.ContentType)
	}
	for _, name := range blanksIn(f.Body) {
		if !strings.Contains(blanks, name) {
			wrong("Body has %s; what is filled in is %s", name, blanks)
			return errs
		}
	}
	if media == "application/json" || strings.HasSuffix(media, "+json") {
		for _, d := range [...]Decision{RejectedBusy, RejectedTooLarge} {
			p := newPage("gate", d, &Config{Refusal: *f})
			if text := p.json.fill(nil, "id", 1); !json.Valid(text) {
				wrong("Body gives no valid JSON, but %.200s; mend it, or say what it is in ContentType", text)
				return errs
			}
		}
	}
	return errs
}

const blanks = "{status} {title} {error} {reason} {gate} {request_id} {retry_after}"

// blanksIn returns what looks like a blank: a word of small letters in
// braces, which neither JSON nor a style sheet has.
func blanksIn(template string) (names []string) {
	for {
		start := strings.IndexByte(template, '{')
		if start < 0 {
			return names
		}
		template = template[start:]
		n := 1 + len(template[1:]) - len(strings.TrimLeft(template[1:], "abcdefghijklmnopqrstuvwxyz_"))
		if n > 1 && n < len(template) && template[n] == '}' {
			names = append(names, template[:n+1])
		}
		template = template[1:]
	}
}
