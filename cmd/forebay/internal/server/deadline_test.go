package server

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// TestQU20CallersDeadlineBoundsItsWait: whoever says how long it waits is refused when that
// is over, whatever the gate's patience; what cannot be read changes nothing and is counted.
func TestQU20CallersDeadlineBoundsItsWait(t *testing.T) {
	r := start(t, "deadline: {header: x-request-timeout}\n"+noLanes)
	running := r.call(1, "/hold")
	r.gateIs("a", 1, 0)
	got := r.get("/", "X-Request-Timeout", "0.02")
	if got.status != http.StatusServiceUnavailable || !strings.Contains(got.body, "rejected_deadline") {
		t.Errorf("%d %s", got.status, got.body)
	}
	got = r.do(t.Context(), http.MethodPost, r.data+"/", "", "Content-Type", "application/grpc", "Grpc-Timeout", "20m", "Te", "trailers")
	if got.status != http.StatusOK || got.header.Get("Grpc-Status") == "" || !strings.Contains(got.header.Get("Grpc-Message"), "deadline") {
		t.Errorf("%d %v", got.status, got.header)
	}
	bad := []string{"-1", "soon", "1e3", "0", "99999999999999999999999999999"}
	waiting := make(chan reply, len(bad))
	for _, value := range bad {
		go func() { waiting <- r.get("/", "X-Request-Timeout", value) }()
	}
	r.gateIs("a", 1, len(bad))
	r.letGo(1)
	running.want(1, http.StatusOK)
	for range bad {
		if got := <-waiting; got.status != http.StatusOK {
			t.Errorf("%d %s", got.status, got.body)
		}
	}
	if got := r.scrape("forebay_deadlines_ignored_total"); got != "5" {
		t.Errorf("%s deadlines were ignored, want 5", got)
	}
	if st := r.gateIs("a", 0, 0).Stats(); st.RejectedDeadline != 2 || st.Accepted != 6 {
		t.Errorf("%+v", st)
	}
}

// TestRJ15DeadlinePassesInTheAnswer: an answer that has begun breaks off visibly, and is no
// refusal.
func TestRJ15DeadlinePassesInTheAnswer(t *testing.T) {
	r := start(t, "deadline: {header: x-request-timeout}\n"+noLanes)
	for ms := 30; ; ms *= 2 { // longer, where the machine was so slow that no answer had begun
		got := r.get("/stream", "X-Request-Timeout", fmt.Sprintf("%dms", ms))
		if got.status == http.StatusServiceUnavailable || got.status == http.StatusGatewayTimeout {
			continue
		}
		if got.status != 0 || got.header == nil || !strings.Contains(got.body, "EOF") {
			t.Errorf("the answer ended as %+v, want it broken off", got)
		}
		break
	}
	eventually(t, "the upstream is rid of it", func() bool { return r.backend.running.Load() == 0 })
	if st := r.gateIs("a", 0, 0).Stats(); st.Accepted == 0 || st.Accepted+st.Rejected() != st.Decisions() {
		t.Errorf("%+v", st)
	}
}
