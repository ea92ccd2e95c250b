package cli

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"example.com/forebay"
	"example.com/forebay/cmd/forebay/internal/admin"
)

// sends returns what a command line asks the admin port for.
func sends(t *testing.T, args ...string) (line string, body map[string]any) {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		line = r.Method + " " + r.URL.EscapedPath() + " " + r.Header.Get("Content-Type")
		text, _ := io.ReadAll(r.Body)
		if err := json.Unmarshal(text, &body); err != nil {
			t.Errorf("the body is %q: %v", text, err)
		}
		_, _ = io.WriteString(w, "{}")
	}))
	defer s.Close()
	var out, errs bytes.Buffer
	if code := Main(append(args, "--admin", s.URL, "--timeout", "1m"), &out, &errs); code != exitOK {
		t.Errorf("%v ends with %d: %s", args, code, errs.String())
	}
	return line, body
}

func TestSetAsksForIt(t *testing.T) {
	line, body := sends(t, "set", "a/b.c.max_in_flight", "4", "--for", "15m", "--why", "DB failover", "--by", "ann")
	if line != "PUT /gates/a%2Fb.c/max_in_flight application/json" || len(body) != 4 || body["max_in_flight"] != 4.0 ||
		body["for"] != "15m" || body["why"] != "DB failover" || body["by"] != "ann" {
		t.Errorf("%s %v", line, body)
	}
	if _, body := sends(t, "set", "reports.max_in_flight", "closed"); body["max_in_flight"] != "closed" || body["by"] == "" || body["for"] != nil {
		t.Errorf("%v", body)
	}
	line, body = sends(t, "unset", "reports.max_in_flight", "--why", "over", "--by", "ann")
	if line != "DELETE /gates/reports/max_in_flight application/json" || body["why"] != "over" || body["by"] != "ann" {
		t.Errorf("%s %v", line, body)
	}
}

func TestSetSaysWhatIsInForce(t *testing.T) {
	since := time.Date(2026, 11, 30, 3, 0, 0, 0, time.Local)
	o := admin.Override{Gate: "reports", MaxInFlight: 4, Was: 12, Since: since, Until: since.Add(15 * time.Minute), Why: "DB failover", By: "ann@web1"}
	const want = "reports.max_in_flight is 4 by hand until 03:15:00 on Nov 30, 15m0s after it was set; configured is 12\n  by ann@web1: DB failover\n"
	if code, out, errs := run(t, 200, o, "set", "reports.max_in_flight", "4", "--for", "15m"); code != exitOK || out != want || errs != "" {
		t.Errorf("code %d, stdout %q, stderr %q", code, out, errs)
	}
	stats := map[string]any{"gates": []forebay.Stats{{Name: "reports", Capacity: 4, Available: 4}}, "overrides": []admin.Override{o}}
	if code, out, _ := run(t, 200, stats, "status"); code != exitOK || !strings.HasSuffix(out, want) {
		t.Errorf("status: code %d, %q", code, out)
	}
	code, out, _ := run(t, 200, admin.Override{Gate: "reports", Was: 12}, "set", "reports.max_in_flight", "closed")
	if code != exitOK || out != "reports.max_in_flight is closed by hand until somebody takes it back, or the configuration is reloaded; configured is 12\n" {
		t.Errorf("code %d, stdout %q", code, out)
	}
	code, out, _ = run(t, 200, map[string]int{"limit": 12}, "unset", "reports.max_in_flight")
	if code != exitOK || out != "reports.max_in_flight is 12 again, as configured\n" {
		t.Errorf("code %d, stdout %q", code, out)
	}
}

func TestSetSaysWhatIsWrong(t *testing.T) {
	code, _, errs := run(t, 400, map[string]any{"error": "the limit was not changed", "problems": []string{"for is \"x\"", "max_in_flight is 0"}},
		"set", "reports.max_in_flight", "0", "--for", "x")
	if code != exitNo || errs != "forebay: error: the limit was not changed\nforebay: error: for is \"x\"\nforebay: error: max_in_flight is 0\n" {
		t.Errorf("code %d, stderr %q", code, errs)
	}
	for _, key := range []string{"reports", ".max_in_flight", "reports.max_wait"} {
		code, _, errs := run(t, 200, nil, "set", key, "4")
		if code != exitUsage || !strings.Contains(errs, "hint: name a gate and its limit, as in reports.max_in_flight") {
			t.Errorf("%s: code %d, stderr %q", key, code, errs)
		}
	}
	code, _, errs = run(t, 401, map[string]string{"error": "the token is missing"}, "unset", "reports.max_in_flight")
	if code != exitNo || !strings.Contains(errs, "hint: give the admin token with --token-file FILE") {
		t.Errorf("code %d, stderr %q", code, errs)
	}
}
