//go:build linux

package ops_test

import (
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Each example is what check calls proven, apart from the one thing that no file of
// ours can say: the timeout of the application itself.
func TestExamples(t *testing.T) {
	want := []string{"unknown application_timeout", "ok timeout_chain", "ok pool_size"}
	files, err := filepath.Glob(filepath.Join(repository, "deploy", "examples", "*.yaml"))
	if err != nil || len(files) != 3 {
		t.Fatalf("%v, %v; want gunicorn, php-fpm-behind-nginx and delphi", files, err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			findings, code := checked(t, file)
			if code != 0 || !slices.Equal(findings, want) {
				t.Errorf("check ends with %d and finds %q; want 0 and %q", code, findings, want)
			}
		})
	}
}

// The gates of the Delphi server, request by request.
func TestDelphiRoutes(t *testing.T) {
	file := filepath.Join(repository, "deploy", "examples", "delphi.yaml")
	for request, want := range map[string]string{
		"GET /health":              "",
		"GET /api/reports":         "reports",
		"GET /api/reports/month/7": "reports",
		"GET /API/Reports/7":       "orders reports", // nobody gets round the strict gate
		"POST /api/orders/":        "orders",
		"GET /admin/sessions":      "admin",
		"GET /something-new":       "orders",
	} {
		out, err := exec.Command(program, "check", file, "--route", request).CombinedOutput()
		if err != nil {
			t.Errorf("%s: %v\n%s", request, err, out)
			continue
		}
		var gates []string
		for line := range strings.Lines(string(out)) {
			if rest, isGate := strings.CutPrefix(line, "gate"); isGate {
				name, _, _ := strings.Cut(strings.TrimSpace(rest), ":")
				gates = append(gates, name)
			}
		}
		if got := strings.Join(gates, " "); got != want {
			t.Errorf("%s passes %q, want %q\n%s", request, got, want, out)
		}
	}
}
