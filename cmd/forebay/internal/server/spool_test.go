package server

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"example.com/forebay/cmd/forebay/internal/proxy"
)

const spoolGates = "gates: {a: {max_in_flight: 1, hold: %s}}\nroutes: [{match: /, gate: a}]\nspool: {directory: %q, memory: 1MiB, disk: %s}\n"

// slow asks for something large and reads no more than the head of the answer.
func (r *rig) slow() *http.Response {
	r.Helper()
	conn, err := guarded(context.Background(), "tcp", strings.TrimPrefix(r.data, "http://"))
	if err != nil {
		r.Fatal(err)
	}
	r.Cleanup(func() { _ = conn.Close() })
	_ = conn.(*net.TCPConn).SetReadBuffer(64 << 10)
	fmt.Fprint(conn, "GET /large/16 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
	res, err := http.ReadResponse(bufio.NewReaderSize(conn, 16), nil)
	if err != nil {
		r.Fatal(err)
	}
	return res
}

// rest reads what is left of such an answer.
func (r *rig) rest(res *http.Response) {
	r.Helper()
	if n, err := io.Copy(io.Discard, res.Body); n != 256<<16 || err != nil {
		r.Errorf("%d bytes, %v", n, err)
	}
}

func (r *rig) spoolStats() (st proxy.SpoolStats) {
	var all struct{ Spool *proxy.SpoolStats }
	all.Spool = &st
	if err := json.Unmarshal([]byte(r.ask("GET", "/stats", "").body), &all); err != nil {
		r.Error(err)
	}
	return st
}

// TestSL11ProgramSpools: a slow reader holds no slot, and shows; with no room left it does,
// and shows as well. A reload changes how much there is, and whether.
func TestSL11ProgramSpools(t *testing.T) {
	dir := t.TempDir()
	r := start(t, fmt.Sprintf(spoolGates, "upstream_done", dir, "16MiB"))
	first := r.slow()
	r.gateIs("a", 0, 0)
	if st := r.spoolStats(); st.Answers != 1 || st.Memory.Limit != 1<<20 || st.Memory.Peak != 1<<20 || st.Disk.Held == 0 || st.Disk.Limit != 16<<20 || st.Kept != 0 {
		t.Errorf("%+v", st)
	}
	for metric, want := range map[string]string{
		"forebay_spool_answers": "1", "forebay_spool_limit_bytes": "1.048576e+06", "forebay_spool_disk_limit_bytes": "1.6777216e+07",
		"forebay_spool_kept_total": "0", "forebay_spool_errors_total": "0",
	} {
		if got := r.scrape(metric); got != want {
			t.Errorf("%s is %s, want %s", metric, got, want)
		}
	}
	if got := r.scrape("forebay_spool_disk_bytes"); got == "0" || got == "" {
		t.Errorf("on disk are %q bytes", got)
	}
	if got := r.get("/x"); got.status != http.StatusOK {
		t.Errorf("beside it: %d %s", got.status, got.body)
	}
	r.reload(fmt.Sprintf(spoolGates, "upstream_done", dir, "1MiB"))
	second := r.slow() // for which there is no room, since the first has all of it
	eventually(t, "the second keeps its slot", func() bool { return r.spoolStats().Kept == 1 })
	if got := r.scrape("forebay_spool_kept_total"); got != "1" {
		t.Errorf("forebay_spool_kept_total is %s", got)
	}
	r.gateIs("a", 1, 0)
	r.rest(first)
	r.rest(second)
	r.gateIs("a", 0, 0)
	eventually(t, "nothing is held", func() bool { st := r.spoolStats(); return st.Memory.Held+st.Disk.Held == 0 && st.Answers == 0 })
	r.reload(fmt.Sprintf(spoolGates, "handler", dir, "16MiB"))
	third := r.slow()
	r.gateIs("a", 1, 0)
	if st := r.spoolStats(); st.Answers != 0 {
		t.Errorf("%+v", st)
	}
	r.rest(third)
}

// TestSpoolDirectoryOfTheProgram: one that cannot be used is found by the start and by a
// reload, with its place; one that goes later costs nobody an answer.
func TestSpoolDirectoryOfTheProgram(t *testing.T) {
	none := filepath.Join(t.TempDir(), "none")
	r := start(t, fmt.Sprintf(spoolGates, "handler", none, "16MiB"))
	r.write(fmt.Sprintf(spoolGates, "upstream_done", none, "16MiB"))
	if err := r.Reload(t.Context()); err == nil || !strings.Contains(err.Error(), ":7:20: spool.directory cannot be used") {
		t.Errorf("the reload says %v", err)
	}
	if _, err := New(Options{Version: "test", Load: r.load}); err == nil || !strings.Contains(err.Error(), "spool.directory cannot be used") {
		t.Errorf("the start says %v", err)
	}
	dir := t.TempDir() + "/spool"
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	r.reload(fmt.Sprintf(spoolGates, "upstream_done", dir, "16MiB"))
	if err := os.Remove(dir); err != nil {
		t.Fatal(err)
	}
	c := r.slow()
	r.logged("a file of the spool failed", "no such file")
	r.gateIs("a", 1, 0)
	r.rest(c)
	if st := r.spoolStats(); st.Errors != 1 || st.Kept != 1 {
		t.Errorf("%+v", st)
	}
}

// TestDrainWaitsForSlowReaders: though their slots are free.
func TestDrainWaitsForSlowReaders(t *testing.T) {
	r := start(t, "drain_timeout: 24h\n"+fmt.Sprintf(spoolGates, "upstream_done", t.TempDir(), "16MiB"))
	c := r.slow()
	r.gateIs("a", 0, 0)
	r.cancel()
	r.logged("draining before exit")
	r.rest(c)
	if code := r.exit(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

// TestDrainEndsSlowReaders: who does not read is ended with drain_timeout.
func TestDrainEndsSlowReaders(t *testing.T) {
	r := start(t, "drain_timeout: 100ms\n"+fmt.Sprintf(spoolGates, "upstream_done", t.TempDir(), "16MiB"))
	c := r.slow()
	r.gateIs("a", 0, 0)
	if code := r.exit(); code != 1 {
		t.Errorf("exit code %d", code)
	}
	if n, err := io.Copy(io.Discard, c.Body); err == nil {
		t.Errorf("an answer of %d bytes looks whole", n)
	}
	eventually(t, "nothing is held", func() bool { st := r.spool.Stats(); return st.Memory.Held+st.Disk.Held == 0 && st.Answers == 0 })
}
