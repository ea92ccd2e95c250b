package server

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"testing"

	"example.com/forebay/cmd/forebay/internal/story"
)

// explained returns the stories of an id.
func (r *rig) explained(id string) []story.Story {
	r.Helper()
	got := r.ask("GET", "/explain/"+id, "")
	if got.status != http.StatusOK {
		r.Fatalf("explain %s: %d %s", id, got.status, got.body)
	}
	var told struct {
		Stories []story.Story `json:"stories"`
	}
	if err := json.Unmarshal([]byte(got.body), &told); err != nil {
		r.Fatal(err)
	}
	return told.Stories
}

// TestExplainARefusal: by the id of the answer, and by what the client had called the
// request, one is told what the client was told, and who held the slots.
func TestExplainARefusal(t *testing.T) {
	r := start(t, fmt.Sprintf(twoGates, 2))
	running := r.call(2, "/b/hold")
	r.gateIs("b", 2, 0)
	got := r.get("/b/x", "X-Request-Id", "mine")
	id := got.header.Get("X-Request-Id")
	if got.status != http.StatusServiceUnavailable || id == "mine" || id == "" {
		t.Fatalf("status %d, id %q; want a refusal with an id of ours", got.status, id)
	}
	find := func(id string) (s story.Story) {
		eventually(t, "the answer is in the story", func() bool {
			all := r.explained(id)
			s = all[0]
			return len(all) == 1 && s.Status != 0
		})
		return s
	}
	s := find(id)
	retry, _ := strconv.Atoi(got.header.Get("Retry-After"))
	if s.Gate != "b" || s.Decision != "rejected_busy" || s.Status != got.status || s.RetryAfter != retry || retry == 0 || s.ClientID != "mine" ||
		s.Limit != 2 || s.InFlight != 2 || len(s.Gates) != 1 || s.RemoteIP != "127.0.0.0" {
		t.Errorf("story %+v of the answer %+v", s, got)
	}
	if h := s.Holders; h == nil || h.Calls != 2 || len(h.Routes) != 1 || h.Routes[0].Calls != 2 || h.Routes[0].Route != s.Route {
		t.Errorf("holders %+v", s.Holders)
	}
	if by := find("mine"); by.ID != s.ID || find(s.ID).RequestID != id {
		t.Errorf("by the client's id: %+v", by)
	}
	r.letGo(2)
	running.want(2, http.StatusOK)
	if got := r.ask("GET", "/rejections", ""); got.status != http.StatusOK {
		t.Errorf("/rejections: %d %s", got.status, got.body)
	}
}

// TestStoriesOfATrustedProxysID: whoever is trusted to name requests may name two alike.
func TestStoriesOfATrustedProxysID(t *testing.T) {
	r := start(t, "request_id: {trust: everybody}\n"+fmt.Sprintf(twoGates, 2))
	r.get("/b/x", "X-Request-Id", "same")
	r.get("/a/x", "X-Request-Id", "same")
	all := r.explained("same")
	if len(all) != 2 || all[0].Gate != "a" || all[1].Gate != "b" || all[0].ID == all[1].ID || all[0].ClientID != "" {
		t.Errorf("stories %+v", all)
	}
}
