package check

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"example.com/forebay/cmd/forebay/internal/config"
)

// Severity says how bad a finding is.
type Severity uint8

// The severities, the worst first. Only Error makes `forebay check` say no.
const (
	Error   Severity = iota // it will go wrong
	Warning                 // it is hardly meant, or wrong under load
	Unknown                 // whether it holds depends on what is not written here
	OK                      // it was checked, and holds
)

// String returns "error", "warning", "unknown" or "ok".
func (s Severity) String() string {
	return [...]string{"error", "warning", "unknown", "ok"}[s]
}

// MarshalText returns the word, for JSON.
func (s Severity) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Finding is one thing that a rule says about a configuration.
type Finding struct {
	Severity Severity   `json:"severity"`
	Rule     string     `json:"rule"`
	Pos      config.Pos `json:"pos"`  // zero where the file says nothing
	Key      string     `json:"key"`  // as in docs/config.md: "gates.reports.max_wait"
	Text     string     `json:"text"` // what is so; of errors and warnings also what would be right
}

// String returns "error: timeout_chain: …", with the line where there is one.
func (f Finding) String() string {
	if f.Pos.Line == 0 {
		return fmt.Sprintf("%s: %s: %s", f.Severity, f.Rule, f.Text)
	}
	return fmt.Sprintf("%s: %s: line %d: %s", f.Severity, f.Rule, f.Pos.Line, f.Text)
}

// Worst returns the worst severity, OK if there are no findings.
func Worst(findings []Finding) Severity {
	worst := OK
	for _, f := range findings {
		worst = min(worst, f.Severity)
	}
	return worst
}

// checker collects findings.
type checker struct {
	*config.Config
	findings []Finding
}

func (c *checker) find(s Severity, rule, key, format string, args ...any) {
	for i, a := range args {
		if t, ok := a.(time.Duration); ok {
			args[i] = Duration(t)
		}
	}
	c.findings = append(c.findings, Finding{s, rule, c.At(key), key, fmt.Sprintf(format, args...)})
}

// Check returns what all rules say, the worst first, then by place.
func Check(conf *config.Config) []Finding {
	c := &checker{Config: conf}
	c.timeoutChain()
	c.applicationTimeout()
	c.drain()
	c.waits()
	c.lines()
	c.retryAfter()
	c.poolSizes()
	c.poolUnknown()
	c.autos()
	c.unused()
	c.lanes()
	c.retries()
	c.heldShort()
	c.chainRules()
	c.bodies()
	c.spool()
	c.routesNeverMatched()
	c.healthGated()
	c.adminOpen()
	c.trust()
	c.clusterTerms()
	c.clusterSecrets()
	return c.sorted()
}

func (c *checker) sorted() []Finding { return Sorted(c.findings) }

// Sorted returns findings in the order in which they are shown: the worst first, then
// by place.
func Sorted(findings []Finding) []Finding {
	slices.SortStableFunc(findings, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.Severity, b.Severity), a.Pos.Line-b.Pos.Line, a.Pos.Col-b.Pos.Col)
	})
	return findings
}

func gateKey(gate, key string) string { return "gates." + gate + "." + key }
