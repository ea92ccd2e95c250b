//go:build unix

package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
)

const finds = `
upstream: %s
gates:
  a: {max_in_flight: {auto: {start: 16, max: 40}}, max_wait: 10m, max_waiting: 100}
routes:
  - {match: /, gate: a}
`

// TestAutoFindsWhatTheUpstreamTakes: an upstream that takes three requests at once and
// refuses more brings the limit down from 16, and everybody who looks sees why.
func TestAutoFindsWhatTheUpstreamTakes(t *testing.T) {
	var running, refused atomic.Int64
	letGo := make(chan struct{})
	over := make(chan struct{})
	b := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer running.Add(-1)
		if running.Add(1) > 3 {
			refused.Add(1)
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		select {
		case <-letGo:
		case <-over:
		}
	}))
	t.Cleanup(func() {
		close(over)
		b.Close()
	})
	p := start(t, fmt.Sprintf(finds, b.URL))
	if got := p.auto(); got.Centre != 16 || got.Reason != "start" {
		t.Fatalf("at first %+v", got)
	}
	wave := func() {
		was := refused.Load()
		c := p.call(12, "/")
		eventually(t, "three run and others are refused", func() bool { return running.Load() == 3 && refused.Load() > was })
		for range 12 {
			for got := false; !got; {
				select {
				case letGo <- struct{}{}:
				case r := <-c.replies:
					got = true
					if r.status != http.StatusOK && r.status != http.StatusServiceUnavailable {
						t.Errorf("%+v", r)
					}
				}
			}
		}
	}
	eventually(t, "the limit falls", func() bool {
		wave()
		return p.auto().Centre < 16
	})
	if got := p.auto(); got.Reason != "overloaded" || got.Last[0].From != 16 || got.Last[0].Why != "overloaded" {
		t.Errorf("then %+v", got)
	}
	p.logged(`"msg":"a limit has moved"`, `"gate":"a"`, `"from":16`, `"why":"overloaded"`)
	if n := p.metrics()[`forebay_adaptive_moves_total{gate="a",reason="overloaded"}`]; n < 1 {
		t.Errorf("forebay_adaptive_moves_total is %v", n)
	}
	shown, _ := exec.Command(binary, "status", "--admin", strings.TrimPrefix(p.admin, "http://")).Output()
	if !strings.Contains(string(shown), " auto, overloaded ") {
		t.Errorf("status says\n%s", shown)
	}
	p.gateIs("a", 0, 0)
	if st := p.stats("a"); st.Granted != st.Released || st.StaleReleases != 0 || st.LimiterPanics != 0 {
		t.Errorf("%+v", st)
	}
	p.signal(syscall.SIGTERM)
	if code := p.exit(); code != 0 {
		t.Errorf("it ends with %d", code)
	}
}

// auto is what the program says of a limit that finds itself.
type auto struct {
	Centre float64
	Reason string
	Last   []struct {
		From int
		Why  string
	} `json:"last_moves"`
}

func (p *program) auto() auto {
	p.Helper()
	var st struct{ Auto auto }
	if err := json.Unmarshal([]byte(p.ask("GET", "/stats/a", "").body), &st); err != nil {
		p.Fatal(err)
	}
	return st.Auto
}
