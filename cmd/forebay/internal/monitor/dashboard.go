package monitor

import (
	"encoding/json"
	"fmt"
)

// panel is one picture of a dashboard as Grafana reads it, by its words, which are not
// ours.
type panel map[string]any

// source is the Prometheus that whoever looks has chosen.
var source = map[string]any{"type": "prometheus", "uid": "${datasource}"}

// picture is a panel before it has its place.
type picture struct {
	kind, title, about, unit string
	stacked                  bool
	exprs                    [][2]string // legend, expression
}

const (
	ofGate = `gate=~"$gate"`
	every  = `[$__rate_interval]`
)

// pictures are in the order in which one asks at night: is something wrong, where, why.
func pictures(shared bool) []picture {
	quantile := func(q, metric string) string {
		return fmt.Sprintf(`histogram_quantile(%s, sum by (gate, le) (rate(%s_bucket{%s}%s)))`, q, metric, ofGate, every)
	}
	all := []picture{
		{"table", "Verdicts", "What is wrong, most of the time nothing; docs/runbook.md says what to do.", "short", false, [][2]string{
			{"{{gate}}: {{verdict}}", `forebay_verdict{` + ofGate + `} == 1`}}},
		{"timeseries", "In flight, and the limit", "Units that run, the most since the last scrape, and what may run.", "short", false, [][2]string{
			{"{{gate}} in flight", `forebay_in_flight_peak{` + ofGate + `}`}, {"{{gate}} limit", `forebay_limit{` + ofGate + `}`}}},
		{"timeseries", "Decisions a second", "Every call has one.", "reqps", true, [][2]string{
			{"{{decision}}", `sum by (decision) (rate(forebay_decisions_total{` + ofGate + `}` + every + `))`}}},
		{"timeseries", "Waited", "Time in line until the decision: it rises before anything is refused.", "s", false, [][2]string{
			{"{{gate}} p50", quantile("0.5", "forebay_wait_seconds")}, {"{{gate}} p95", quantile("0.95", "forebay_wait_seconds")},
			{"{{gate}} p99", quantile("0.99", "forebay_wait_seconds")}}},
		{"timeseries", "In line", "Calls that wait, the most since the last scrape.", "short", false, [][2]string{
			{"{{gate}}", `forebay_waiting_peak{` + ofGate + `}`}}},
		{"heatmap", "Held", "How long calls have their slots.", "s", false, [][2]string{
			{"{{le}}", `sum by (le) (rate(forebay_hold_seconds_bucket{` + ofGate + `}` + every + `))`}}},
		{"timeseries", "The oldest lease", "How long the call that has held longest has.", "s", false, [][2]string{
			{"{{gate}}", `forebay_oldest_lease_seconds{` + ofGate + `}`}}},
		{"timeseries", "Too early again", "Requests a second that came before their Retry-After was over.", "reqps", false, [][2]string{
			{"{{gate}}", `sum by (gate) (rate(forebay_early_retries_total{` + ofGate + `}` + every + `))`}}},
		{"timeseries", "Limits set by hand", "Only while there are some.", "short", false, [][2]string{
			{"{{gate}}", `forebay_override_limit{` + ofGate + `}`}}},
		{"timeseries", "Answers a second", "What clients see, by status.", "reqps", true, [][2]string{
			{"{{http_response_status_code}}", `sum by (http_response_status_code) (rate(http_server_request_duration_seconds_count` + every + `))`}}},
	}
	if shared {
		all = append(all,
			picture{"timeseries", "Over the cluster", "What is lent to all programs, and what may be.", "short", false, [][2]string{
				{"{{gate}} in use", `max by (gate) (forebay_cluster_in_use{` + ofGate + `})`}, {"{{gate}} held", `max by (gate) (forebay_cluster_held{` + ofGate + `})`},
				{"{{gate}} limit", `max by (gate) (forebay_cluster_limit{` + ofGate + `})`}}},
			picture{"timeseries", "How gates go on with their store", "1 of the mode that each program is in.", "short", false, [][2]string{
				{"{{instance}} {{gate}} {{mode}}", `forebay_cluster_mode{` + ofGate + `} == 1`}}})
	}
	return all
}

// Dashboard returns a dashboard for Grafana 9 and later, to be imported as it is.
func Dashboard(gates []Gate) ([]byte, error) {
	var panels []panel
	for i, p := range pictures(anyShared(gates)) {
		panels = append(panels, p.at(i))
	}
	variable := func(name, label, kind, query string) map[string]any {
		return map[string]any{"name": name, "label": label, "type": kind, "query": query, "hide": 0}
	}
	gate := variable("gate", "Gate", "query", "label_values(forebay_limit, gate)")
	gate["datasource"], gate["refresh"], gate["multi"], gate["includeAll"] = source, 2, true, true
	gate["current"] = map[string]any{"text": "All", "value": "$__all"}
	return json.MarshalIndent(map[string]any{
		"title": "Forebay", "uid": "forebay-gates", "schemaVersion": 38, "version": 1, "editable": true, "refresh": "10s",
		"time":       map[string]string{"from": "now-1h", "to": "now"},
		"tags":       []string{"forebay"},
		"templating": map[string]any{"list": []any{variable("datasource", "Prometheus", "datasource", "prometheus"), gate}},
		"panels":     panels,
	}, "", "  ")
}

// at puts a picture on the page: two in a row, the first over both.
func (p *picture) at(i int) panel {
	where := map[string]int{"h": 8, "w": 12, "x": 12 * ((i + 1) % 2), "y": 4 + 8*((i-1)/2)}
	if i == 0 {
		where = map[string]int{"h": 4, "w": 24, "x": 0, "y": 0}
	}
	return panel{
		"id": i + 1, "type": p.kind, "title": p.title, "description": p.about, "gridPos": where, "datasource": source,
		"targets": p.targets(), "fieldConfig": map[string]any{"defaults": p.defaults(), "overrides": []any{}}, "options": map[string]any{},
	}
}

func (p *picture) targets() (all []map[string]any) {
	for i, e := range p.exprs {
		t := map[string]any{"refId": string(rune('A' + i)), "legendFormat": e[0], "expr": e[1]}
		switch p.kind {
		case "table":
			t["format"], t["instant"] = "table", true
		case "heatmap":
			t["format"] = "heatmap"
		}
		all = append(all, t)
	}
	return all
}

func (p *picture) defaults() map[string]any {
	drawn := map[string]any{}
	if p.stacked {
		drawn["stacking"], drawn["fillOpacity"] = map[string]any{"mode": "normal"}, 60
	}
	return map[string]any{"unit": p.unit, "min": 0, "custom": drawn}
}
