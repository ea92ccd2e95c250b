package monitor

import (
	"fmt"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"
)

// Gate is what is to be known of one that runs.
type Gate struct {
	Name    string
	MaxWait time.Duration // 0: nobody waits
	Shared  bool          // with other programs, by a cluster
}

// rule is an alert as Prometheus reads it, by its words, which are not ours.
type rule map[string]any

const (
	warning  = "warning"  // look at it today
	critical = "critical" // somebody is refused, or soon will be
)

func newRule(name, expr, lasts, severity, summary string) rule {
	return rule{
		"alert": name, "expr": expr, "for": lasts, "labels": map[string]string{"severity": severity},
		"annotations": map[string]string{"summary": summary, "runbook": "docs/runbook.md#" + strings.ToLower(name)},
	}
}

// Alerts returns the rules for Prometheus, as a file of rules.
func Alerts(gates []Gate) ([]byte, error) {
	groups := []map[string]any{{"name": "forebay", "rules": rules(anyShared(gates))}}
	if own := waitRules(gates); len(own) > 0 {
		groups = append(groups, map[string]any{"name": "forebay-waits", "rules": own})
	}
	return yaml.Marshal(map[string]any{"groups": groups})
}

func anyShared(gates []Gate) bool {
	for _, g := range gates {
		if g.Shared {
			return true
		}
	}
	return false
}

// shortOf are the decisions that refuse for want of a slot: not those of a drain, nor of
// callers who have too much themselves.
const shortOf = `decision=~"rejected_.*",decision!~"rejected_(draining|caller)"`

// rules are those that are the same for all gates.
func rules(shared bool) []rule {
	refused := func(lasts string) string {
		return fmt.Sprintf(`sum by (gate) (rate(forebay_decisions_total{%s}[%s])) > %v * sum by (gate) (rate(forebay_decisions_total[%s]))`, shortOf, lasts, budget, lasts)
	}
	all := []rule{
		newRule("ForebayVerdict", `forebay_verdict == 1`, "1m", critical,
			"Gate {{ $labels.gate }}: {{ $labels.verdict }}. forebay status says it in numbers, and what to do."),
		newRule("ForebayRefusalBudget", refused("1h")+"\nand\n"+refused("5m"), "2m", critical,
			"Gate {{ $labels.gate }} has refused more than 1 % of the calls of the last hour, and still does."),
		newRule("ForebayOldestLease",
			`forebay_oldest_lease_seconds > 30`+"\nand\n"+
				`forebay_oldest_lease_seconds > 3 * histogram_quantile(0.99, sum by (instance, job, gate, le) (rate(forebay_hold_seconds_bucket[1h])))`, "5m", warning,
			"A call has held a slot of gate {{ $labels.gate }} for {{ $value | humanizeDuration }}, three times as long as 99 % of them. /holders says which."),
		newRule("ForebayFastLaneWaits", `forebay_verdict{verdict="fast_lane_in_danger"} == 1`, "0s", critical,
			"Calls of the fast lane of gate {{ $labels.gate }} wait, or have used up what is kept for them."),
		newRule("ForebayEarlyRetries",
			`sum by (gate) (rate(forebay_early_retries_total[5m])) > 0.1 * sum by (gate) (rate(forebay_decisions_total[5m]))`, "5m", warning,
			"More than 10 % of the calls at gate {{ $labels.gate }} were told to come later."),
		newRule("ForebayOverrideOld", `time() - forebay_override_since_timestamp_seconds > 3600`, "0s", warning,
			"The limit of gate {{ $labels.gate }} was set by hand more than an hour ago. What is right belongs in the configuration."),
		newRule("ForebayReloadFailed", `forebay_config_last_reload_successful == 0`, "5m", warning,
			"The configuration on disk has a mistake; the one before is in force. A restart would fail."),
		newRule("ForebayClosed", `forebay_limit == 0`, "10m", warning,
			"Gate {{ $labels.gate }} is closed: it refuses everybody."),
	}
	if shared {
		all = append(all, newRule("ForebayStoreAway", `forebay_cluster_mode{mode=~"share|open|closed"} == 1`, "1m", critical,
			"Gate {{ $labels.gate }} does without its Redis, and goes on as when_store_is_away says: {{ $labels.mode }}."))
	}
	return all
}

// budget is the share of calls that may be refused: beyond it somebody notices.
const budget = 0.01

// waitRules are each gate's own: its calls wait for more than half of their patience.
func waitRules(gates []Gate) (all []rule) {
	for _, g := range gates {
		if g.MaxWait == 0 {
			continue
		}
		expr := fmt.Sprintf(`histogram_quantile(0.95, sum by (gate, le) (rate(forebay_wait_seconds_bucket{gate=%q}[5m]))) > %v`, g.Name, g.MaxWait.Seconds()/2)
		all = append(all, newRule("ForebayWaitsLong", expr, "5m", warning,
			fmt.Sprintf("The slowest twentieth of the calls at gate %s waits for {{ $value | humanizeDuration }} of at most %v: nothing is refused for it yet.", g.Name, g.MaxWait)))
	}
	return all
}
