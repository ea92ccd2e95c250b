package cli

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"example.com/forebay/cmd/forebay/internal/story"
)

// run runs a command line against an admin port that answers so, and returns what it
// prints.
func run(t *testing.T, status int, answer any, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	body, err := json.Marshal(answer)
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(status)
		_, _ = w.Write(body)
	}))
	defer s.Close()
	var out, errs bytes.Buffer
	code = Main(append(args, "--admin", strings.TrimPrefix(s.URL, "http://"), "--timeout", "1m"), &out, &errs)
	return code, out.String(), errs.String()
}

func TestExplainPrintsEachStory(t *testing.T) {
	refused := story.Story{
		ID: "ABCD.1", RequestID: "4bf9", ClientID: "mine", At: time.Date(2026, 11, 30, 3, 0, 0, 5e6, time.UTC), Gate: "reports",
		Route: "GET /reports/", Gates: []string{"orders", "reports"}, RemoteIP: "192.0.2.0", Decision: "rejected_busy", Why: "all 4 slots were taken",
		Limit: 4, InFlight: 4, Waiting: 8, Place: 9, MaxWaitMS: 100, Status: 503, RetryAfter: 2, RetryWhy: "chance",
		Holders: &story.Holders{BeforeMS: 12, Calls: 7, Routes: []story.RouteHolders{{Route: "GET /reports/", Calls: 4, OldestMS: 2500}}, Others: 3},
	}
	served := story.Story{ID: "ABCD.0", RequestID: "4bf9", Gate: "reports", Decision: "accepted", Why: "it ran at once", Limit: 4, InFlight: 1, Ended: "done", HeldMS: 30}
	code, out, errs := run(t, 200, map[string]any{"stories": []story.Story{refused, served}, "left_out": 3}, "explain", "4bf9")
	want := `call        4bf9
story       ABCD.1
client's id mine
at          2026-11-30 03:00:00.005 UTC
caller      192.0.2.0
route       GET /reports/
gate        reports, of the chain orders, reports
decision    rejected_busy: all 4 slots were taken
gate was    4 of 4 in flight, 8 waiting; its place would have been 9
waited      0s of 100ms
answer      503, Retry-After 2 s: chance
held by     7 calls, 12ms before
            4 of GET /reports/, the oldest for 2.5s
            3 of other routes

call        4bf9
story       ABCD.0
at          0001-01-01 00:00:00.000 UTC
route       none
gate        reports
decision    accepted: it ran at once
gate was    1 of 4 in flight, 0 waiting
waited      0s of 0s
ended       done, after 30ms with the slot

3 older calls with this id are not shown
`
	if code != exitOK || out != want || errs != "" {
		t.Errorf("code %d, stderr %q, stdout\n%s\nwant\n%s", code, errs, out, want)
	}
}

func TestExplainOfAnUnknownID(t *testing.T) {
	code, out, errs := run(t, 404, map[string]string{"error": "no call is known by that id; kept are all since noon"}, "explain", "x")
	if code != exitNo || out != "" || errs != "forebay: error: no call is known by that id; kept are all since noon\n" {
		t.Errorf("code %d, stdout %q, stderr %q", code, out, errs)
	}
}
