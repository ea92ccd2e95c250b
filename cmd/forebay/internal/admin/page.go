package admin

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"example.com/forebay/cmd/forebay/internal/story"
	"example.com/forebay/cmd/forebay/internal/verdict"
)

// page is what a browser sees at /: nothing from elsewhere, and one script of ours,
// without which it is whole and stands still.
var page = template.Must(template.New("page").Parse(`<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>forebay</title>
<style>
body { font: 16px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 60rem; padding: 0 1rem }
main { overflow-x: auto }
table { border-collapse: collapse; width: 100% }
th, td { text-align: left; padding: .25rem 1rem .25rem 0; border-bottom: 1px solid #8884; vertical-align: top }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums }
code { font-size: .95em }
.wrong { border-left: .4rem solid #d55e00; padding-left: .8rem }
</style>
<h1>forebay {{.Version}}</h1>
<p id="live" role="status"></p>
<main>{{template "main" .}}</main>
<h2>What there is</h2>
<table>
{{range .Endpoints}}<tr><td>{{.Methods}}<td>{{if .Link}}<a href="{{.Path}}">{{.Path}}</a>{{else}}<code>{{.Path}}</code>{{end}}<td>{{.About}}
{{end}}</table>
<script>{{.Script}}</script>
</html>
{{define "main"}}<p>{{.Status}}{{with .ConfigPath}}, <code>{{.}}</code>{{end}}</p>
{{range .Verdicts}}<p class="wrong"><strong>{{.Gate}}: {{.Verdict}}.</strong> {{.Text}}. <em>{{.Remedy}}.</em>
{{end}}<table>
<tr><th>gate<th class="n">in flight<th class="n">limit<th class="n">waiting<th class="n">accepted<th class="n">refused<th>
{{range .Gates}}<tr><td><a href="/stats/{{.Path}}">{{.Name}}</a><td class="n">{{.InUse}}<td class="n">{{.Limit}}<td class="n">{{.Waiting}}<td class="n">{{.Accepted}}<td class="n">{{.Rejected}}<td><a href="/holders/{{.Path}}">holders</a>
{{end}}</table>
{{with .Refusals}}<h2>The last refusals</h2>
<table>
<tr><th>at<th>gate<th>route<th>why
{{range .}}<tr><td>{{.At.Format "15:04:05"}}<td>{{.Gate}}<td>{{.Route}}<td><a href="/explain/{{.ID}}">{{.Decision}}</a>: {{.Why}}
{{end}}</table>
{{end}}{{end}}`))

// live is the page's script: it puts in what /events sends. It waits while somebody has
// the focus in there, or selects, so that nothing is taken out of their hands.
const live = `"use strict";
const main = document.querySelector("main"), live = document.getElementById("live");
const source = new EventSource("/events?as=page");
source.addEventListener("page", event => {
  live.textContent = "live";
  if (main.contains(document.activeElement) || String(getSelection())) return;
  main.innerHTML = JSON.parse(event.data);
});
source.onerror = () => { live.textContent = "not live: the connection is gone, trying again"; };
`

// policy lets a browser run that script and no other, and ask us and nobody else.
var policy = fmt.Sprintf("default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-%s'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
	base64.StdEncoding.EncodeToString(sum(live)))

func sum(s string) []byte {
	hash := sha256.Sum256([]byte(s))
	return hash[:]
}

// shownRefusals is how many of the last are on the page.
const shownRefusals = 10

// pageView is what the page shows.
type pageView struct {
	Version, Status, ConfigPath string
	Verdicts                    []verdict.Verdict
	Gates                       []pageGate
	Refusals                    []story.Story
	Endpoints                   []pageEndpoint
	Script                      template.JS
}

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
	view := a.pageView()
	view.Script = live
	for _, e := range a.endpoints {
		view.Endpoints = append(view.Endpoints, pageEndpoint{
			Methods: strings.Join(e.allowed(), " "), Path: e.path, About: e.about,
			Link: e.methods[http.MethodGet] != nil && !strings.Contains(e.path, "{") && e.path != eventsPath,
		})
	}
	var body bytes.Buffer // whole before the first byte is sent
	if err := page.Execute(&body, view); err != nil {
		answer(w, r, http.StatusInternalServerError, failure{Error: "the page cannot be made: " + err.Error()})
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Security-Policy", policy)
	if r.Method != http.MethodHead {
		_, _ = body.WriteTo(w)
	}
}

// pageView is what changes on the page.
func (a *admin) pageView() *pageView {
	info := a.program.Info()
	view := &pageView{
		Version: info.Version, Status: a.health.Report().Status, ConfigPath: info.ConfigPath,
		Verdicts: a.program.Seen().Verdicts(), Refusals: a.program.Stories().Refusals(shownRefusals),
	}
	overrides := a.program.Overrides()
	for _, st := range a.everyGateStats() {
		view.Gates = append(view.Gates, pageGate{st, url.PathEscape(st.Name), shownLimit(st, overrides)})
	}
	return view
}
