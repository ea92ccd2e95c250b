//go:build !windows && !plan9

package telemetry

import (
	"log/syslog"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestSyslogGetsSeverities(t *testing.T) {
	name := filepath.Join(t.TempDir(), "log")
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: name, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	w, err := syslog.Dial("unixgram", name, syslog.LOG_DAEMON|syslog.LOG_INFO, "forebay")
	if err != nil {
		t.Fatal(err)
	}
	o, _ := Options{To: ToSyslog}.checked()
	l := start(o, syslogSink{w})
	l.Logger().Info("up")
	l.Observer().Observe(refusal("reports"))
	l.Logger().Error("broke")
	mustClose(t, l)
	for _, want := range []struct{ priority, text string }{ // facility daemon is 3 × 8
		{"<30>", `"msg":"up"`}, {"<28>", `"decision":"rejected_timeout"`}, {"<27>", `"msg":"broke"`},
	} {
		_ = conn.SetReadDeadline(time.Now().Add(10 * time.Second))
		packet := make([]byte, 4096)
		n, err := conn.Read(packet)
		if got := string(packet[:n]); err != nil || !strings.HasPrefix(got, want.priority) || !strings.Contains(got, want.text) {
			t.Errorf("syslog got %q, %v; want %s and %s", got, err, want.priority, want.text)
		}
	}
}
