package admin

import (
	"fmt"
	"strings"
	"testing"

	"example.com/forebay"
)

func TestExplain(t *testing.T) {
	p := program(t, "reports")
	h := Handler(p, metricsHandler(), Options{Loopback: true, Anonymise: func(string) string { return "shown" }})
	for i := range maxRejections + 5 {
		id := fmt.Sprint("n", i)
		if i >= maxRejections {
			id = "again"
		}
		p.book.Observe(forebay.Event{Gate: "reports", RequestID: id, RemoteIP: "192.0.2.77", Decision: forebay.RejectedDraining})
	}
	got := decoded[stories](t, ask(h, "GET /explain/n7", ""), 200)
	if len(got.Stories) != 1 || got.Stories[0].Decision != "rejected_draining" || got.Stories[0].RemoteIP != "shown" || got.Kept.Refusals != maxRejections+5 {
		t.Errorf("explained: %+v", got)
	}
	if got := decoded[stories](t, ask(h, "GET /explain/"+got.Stories[0].ID, ""), 200); len(got.Stories) != 1 || got.Stories[0].RequestID != "n7" {
		t.Errorf("by the story's own id: %+v", got)
	}
	if got := decoded[stories](t, ask(h, "GET /explain/again", ""), 200); len(got.Stories) != 5 {
		t.Errorf("%d stories of one id, want 5", len(got.Stories))
	}
	last := decoded[stories](t, ask(h, "GET /rejections", ""), 200)
	if len(last.Stories) != maxRejections || last.LeftOut != 0 || last.Stories[0].RequestID != "again" || last.Stories[5].RequestID != "n99" {
		t.Errorf("%d refusals, the first %+v", len(last.Stories), last.Stories[0])
	}
	for range maxStories {
		p.book.Observe(forebay.Event{Gate: "reports", RequestID: "again", Decision: forebay.RejectedDraining})
	}
	if got := decoded[stories](t, ask(h, "GET /explain/again", ""), 200); len(got.Stories) != maxStories || got.LeftOut != 5 {
		t.Errorf("%d stories and %d left out, want %d and 5", len(got.Stories), got.LeftOut, maxStories)
	}
}

// An id that nobody knows is answered with how long ids are kept.
func TestExplainUnknown(t *testing.T) {
	p := program(t, "reports")
	h := Handler(p, metricsHandler(), local)
	for want, id := range map[string]string{
		`the id \"nothing/of/mine\"; kept are all 0 refusals since the start, and all 0 other calls since the start`: "nothing/of/mine",
		`the id \"` + strings.Repeat("x", 40) + `…\"`:                                                                strings.Repeat("x", 4000),
	} {
		if w := ask(h, "GET /explain/"+id, ""); w.Code != 404 || !strings.Contains(w.Body.String(), want) {
			t.Errorf("%d %s, want %q", w.Code, w.Body, want)
		}
	}
	for i := range 40_000 {
		p.book.Observe(forebay.Event{Gate: "reports", RequestID: fmt.Sprint(i), Decision: forebay.RejectedDraining})
	}
	if w := ask(h, "GET /explain/0", ""); w.Code != 404 || !strings.Contains(w.Body.String(), "kept are all refusals since 2") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if w := ask(h, "POST /explain/0", ""); w.Code != 405 {
		t.Errorf("POST: %d", w.Code)
	}
}
