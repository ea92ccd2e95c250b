package forebay

import "strings"

// format is one of the built-in bodies of a refusal.
type format uint8

const (
	formatJSON format = iota
	formatProblem
	formatHTML
)

// formatFor chooses for a client with these Accept headers. Problem details go to
// whoever names them, since whoever does can read them; a page goes to whoever names
// HTML and likes nothing of ours better, as browsers do when they show what they get;
// JSON to everybody else.
func formatFor(accept []string) format {
	if len(accept) == 0 || len(accept) == 1 && accept[0] == "*/*" {
		return formatJSON
	}
	var any, application, json, html quality
	for _, line := range accept {
		for line != "" {
			var item string
			item, line, _ = strings.Cut(line, ",")
			media, params, _ := strings.Cut(item, ";")
			media = strings.Trim(media, " \t")
			switch q := qualityOf(params); {
			case strings.EqualFold(media, "application/problem+json"):
				if q > 0 {
					return formatProblem
				}
			case strings.EqualFold(media, "text/html"), strings.EqualFold(media, "application/xhtml+xml"):
				html = max(html, q)
			case strings.EqualFold(media, "application/json"):
				json = max(json, q+1) // a quality of zero is named as well
			case strings.EqualFold(media, "application/*"):
				application = max(application, q+1)
			case media == "*/*":
				any = max(any, q)
			}
		}
	}
	if html == 0 {
		return formatJSON
	}
	switch {
	case json > 0: // named: JSON unless HTML is liked better
		if json-1 >= html {
			return formatJSON
		}
	case application > 0:
		if application-1 > html {
			return formatJSON
		}
	case any > html:
		return formatJSON
	}
	return formatHTML
}

// quality is a weight in thousandths, as HTTP has them.
type quality int

// qualityOf reads the parameters that follow a media range. What is no weight at all
// counts as the full one.
func qualityOf(params string) quality {
	for params != "" {
		var p string
		p, params, _ = strings.Cut(params, ";")
		name, value, _ := strings.Cut(strings.Trim(p, " \t"), "=")
		if !strings.EqualFold(name, "q") || value == "" || value[0] != '0' {
			continue
		}
		q, unit := quality(0), quality(100)
		for i := 2; i < len(value) && unit > 0; i++ {
			if value[i] < '0' || value[i] > '9' {
				break
			}
			q += quality(value[i]-'0') * unit
			unit /= 10
		}
		return q
	}
	return 1000
}
