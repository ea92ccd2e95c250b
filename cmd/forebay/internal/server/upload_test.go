package server

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"

	"example.com/forebay"
)

const uploadGate = "gates: {a: {max_in_flight: 1%s}}\nroutes: [{match: /, gate: a}]\n"

// upload begins a request of which the body comes later.
func (r *rig) upload(length int, body string) (net.Conn, *bufio.Reader) {
	conn := r.dial()
	fmt.Fprintf(conn, "POST /x HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", length, body)
	return conn, bufio.NewReader(conn)
}

// answered reads an answer.
func answered(t *testing.T, rd *bufio.Reader, status int) {
	t.Helper()
	res, err := http.ReadResponse(rd, nil)
	if err != nil || res.StatusCode != status {
		t.Fatalf("answer %v, %v; want %d", res, err, status)
	}
}

// TestSL18ProgramTakesTheSlotWithTheBody: a small body that trickles in holds no slot,
// within the bounds of the gate and of the intake.
func TestSL18ProgramTakesTheSlotWithTheBody(t *testing.T) {
	r := start(t, "intake: {max_bytes: 4KiB}\n"+fmt.Sprintf(uploadGate, ", acquire: {body: 2KiB}"))
	conn, rd := r.upload(2000, "half")
	eventually(t, "it is held", func() bool { return r.intake.Stats().Bytes.Held == 2000 })
	if got := r.get("/x"); got.status != http.StatusOK {
		t.Errorf("beside the body: %d %s", got.status, got.body)
	}
	r.gateIs("a", 0, 0)
	fmt.Fprint(conn, strings.Repeat("x", 2000-4))
	answered(t, rd, http.StatusOK)
	eventually(t, "nothing is held any more", func() bool { return r.intake.Stats().Bytes.Held == 0 })

	large, _ := r.upload(3000, "half") // above the gate's bound
	r.gateIs("a", 1, 0)
	large.Close()
	r.gateIs("a", 0, 0)

	for range 2 { // 4000 bytes of the intake's
		r.upload(2000, "half")
	}
	eventually(t, "they are held", func() bool { return r.intake.Stats().Bytes.Held == 4000 })
	beyond, _ := r.upload(2000, "half")
	r.gateIs("a", 1, 0)
	beyond.Close()
	r.gateIs("a", 0, 0)
}

// TestSL18ProgramEndsUploads: a body that takes too long is answered 408, whether it comes
// before its slot or after.
func TestSL18ProgramEndsUploads(t *testing.T) {
	for _, rules := range []string{
		", upload: {max_time: 100ms}", ", upload: {min_rate: 1KiB, grace: 100ms}", ", acquire: body, upload: {max_time: 100ms}",
	} {
		r := start(t, fmt.Sprintf(uploadGate, rules))
		_, rd := r.upload(2000, "half")
		answered(t, rd, http.StatusRequestTimeout)
		r.gateIs("a", 0, 0)
		eventually(t, "nothing is held, and it was counted", func() bool { st := r.intake.Stats(); return st.Bytes.Held == 0 && st.Slow == 1 })
		if got := r.get("/x"); got.status != http.StatusOK {
			t.Errorf("%s: afterwards: %d %s", rules, got.status, got.body)
		}
	}
}

// TestIntakeIsShown: what is held, of how much, and what was turned down, on the admin port
// and to a scrape.
func TestIntakeIsShown(t *testing.T) {
	r := start(t, "intake: {max_bytes: 256KiB, discard_total: 1MiB, discard_time: 1m}\n"+fmt.Sprintf(uploadGate, ", acquire: {body: 200KiB}"))
	const large = 200_000
	r.upload(large, "half")
	eventually(t, "it is held", func() bool { return r.Intake().Bytes.Held == large })
	holder, _ := r.upload(large, "half") // for which there is no room: it comes in its slot
	r.gateIs("a", 1, 0)
	refused, rd := r.upload(1<<19, "half")
	answered(t, rd, http.StatusServiceUnavailable)
	var seen struct{ Intake forebay.IntakeStats }
	eventually(t, "the rest of it is waited for", func() bool {
		if err := json.Unmarshal([]byte(r.ask("GET", "/stats", "").body), &seen); err != nil {
			t.Fatal(err)
		}
		return seen.Intake.Promised.Held > 0
	})
	if in := seen.Intake; in.Bytes.Held <= large || in.Bytes.Limit != 256<<10 || in.Bytes.Refused == 0 || in.Discarding != 1 || in.Promised.Held != 1<<19 || in.Promised.Limit != 1<<20 {
		t.Errorf("/stats says %+v", in)
	}
	refused.Close()
	holder.Close()
	eventually(t, "the end is counted", func() bool { st := r.Intake(); return st.Cut == 1 && st.Discarding == 0 })
	for metric, want := range map[string]string{
		"forebay_intake_limit_bytes": "262144", "forebay_discard_limit_bytes": "1.048576e+06", "forebay_discarding": "0",
		"forebay_discard_cut_total": "1", "forebay_slow_bodies_total": "0", "forebay_discard_promised_bytes": "0",
		"forebay_intake_bytes": fmt.Sprint(r.Intake().Bytes.Held), "forebay_intake_refused_total": fmt.Sprint(r.Intake().Bytes.Refused),
		"forebay_discarded_bytes_total": fmt.Sprint(r.Intake().Discarded),
	} {
		if got := r.scrape(metric); got != want {
			t.Errorf("%s %s, want %s", metric, got, want)
		}
	}
}

// TestUploadRulesReload: they change while the program runs; the intake does not.
func TestUploadRulesReload(t *testing.T) {
	r := start(t, fmt.Sprintf(uploadGate, ""))
	slow, _ := r.upload(2000, "half")
	r.gateIs("a", 1, 0)
	slow.Close()
	r.gateIs("a", 0, 0)
	r.reload(fmt.Sprintf(uploadGate, ", acquire: body"))
	r.upload(2000, "half")
	eventually(t, "it is held", func() bool { return r.intake.Stats().Bytes.Held == 2000 })
	r.gateIs("a", 0, 0)
	r.write("intake: {max_bytes: 1MiB}\n" + fmt.Sprintf(uploadGate, ""))
	if err := r.Reload(r.Context()); err == nil || !strings.Contains(err.Error(), "intake is max_bytes: 1MiB") {
		t.Errorf("an intake that changes gives %v", err)
	}
}
