package admin

import (
	"bytes"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"example.com/forebay/cmd/forebay/internal/verdict"
)

// page is what a browser sees at /: no script, nothing from elsewhere.
var page = template.Must(template.New("page").Parse(`<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>forebay</title>
<style>
body { font: 16px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 46rem; padding: 0 1rem }
table { border-collapse: collapse; width: 100% }
th, td { text-align: left; padding: .25rem 1rem .25rem 0; border-bottom: 1px solid #8884 }
td.n, th.n { text-align: right }
code { font-size: .95em }
</style>
<h1>forebay {{.Version}}</h1>
<p>{{.Status}}{{with .ConfigPath}}, <code>{{.}}</code>{{end}}</p>
{{range .Verdicts}}<p><strong>{{.Gate}}: {{.Verdict}}.</strong> {{.Text}}. <em>{{.Remedy}}.</em>
{{end}}<table>
<tr><th>gate<th class="n">in flight<th class="n">limit<th class="n">waiting<th class="n">accepted<th class="n">refused<th>
{{range .Gates}}<tr><td><a href="/stats/{{.Path}}">{{.Name}}</a><td class="n">{{.InUse}}<td class="n">{{.Limit}}<td class="n">{{.Waiting}}<td class="n">{{.Accepted}}<td class="n">{{.Rejected}}<td><a href="/holders/{{.Path}}">holders</a>
{{end}}</table>
<h2>What there is</h2>
<table>
{{range .Endpoints}}<tr><td>{{.Methods}}<td>{{if .Link}}<a href="{{.Path}}">{{.Path}}</a>{{else}}<code>{{.Path}}</code>{{end}}<td>{{.About}}
{{end}}</table>
</html>
`))

type pageGate struct {
	gateStats
	Path  string // the name as it stands in a path
	Limit string // as one reads it at night
}

// shownLimit is the limit in force, and why it is not the configured one.
func shownLimit(st gateStats, overrides []Override) string {
	limit := strconv.Itoa(st.Capacity)
	if st.Capacity == 0 {
		limit = "closed"
	}
	if st.Draining {
		limit += ", draining"
	}
	if st.Cluster != nil {
		limit += fmt.Sprintf(" over %d instances, %d run here", len(st.Cluster.Instances), st.Local.InUse)
		if st.Cluster.Mode != "normal" {
			limit += ", " + st.Cluster.Mode
		}
	}
	for _, o := range overrides {
		if o.Gate != st.Name {
			continue
		}
		until := "cleared or reloaded"
		if !o.Until.IsZero() {
			until = o.Until.Format("15:04:05")
		}
		limit += " until " + until + ", configured " + strconv.Itoa(o.Was)
		if o.By != "" {
			limit += ", by " + o.By
		}
		if o.Why != "" {
			limit += ": " + o.Why
		}
	}
	return limit
}

type pageEndpoint struct {
	Methods, Path, About string
	Link                 bool
}

func (a *admin) servePage(w http.ResponseWriter, r *http.Request, _ string) {
	info := a.program.Info()
	view := struct {
		Version, Status, ConfigPath string
		Verdicts                    []verdict.Verdict
		Gates                       []pageGate
		Endpoints                   []pageEndpoint
	}{Version: info.Version, Status: a.health.Report().Status, ConfigPath: info.ConfigPath, Verdicts: a.program.Seen().Verdicts()}
	overrides := a.program.Overrides()
	for _, st := range a.everyGateStats() {
		view.Gates = append(view.Gates, pageGate{st, url.PathEscape(st.Name), shownLimit(st, overrides)})
	}
	for _, e := range a.endpoints {
		view.Endpoints = append(view.Endpoints, pageEndpoint{
			Methods: strings.Join(e.allowed(), " "), Path: e.path, About: e.about,
			Link: e.methods[http.MethodGet] != nil && !strings.Contains(e.path, "{"),
		})
	}
	var body bytes.Buffer // whole before the first byte is sent
	if err := page.Execute(&body, view); err != nil {
		answer(w, r, http.StatusInternalServerError, failure{Error: "the page cannot be made: " + err.Error()})
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
	if r.Method != http.MethodHead {
		_, _ = body.WriteTo(w)
	}
}
