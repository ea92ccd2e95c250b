package admin

import (
	"fmt"
	"net/http"
	"time"

	"example.com/forebay/cmd/forebay/internal/story"
)

const (
	// maxStories is how many stories of one id are shown: a client that calls every request
	// the same would fill a screen.
	maxStories = 20
	// maxRejections is how many of the last refusals are shown.
	maxRejections = 100
)

// stories are what an id, or the last refusals, have to tell.
type stories struct {
	Stories []story.Story `json:"stories"`
	LeftOut int           `json:"left_out"` // older ones, not shown
	Kept    story.Kept    `json:"kept"`
}

// stories shows addresses as everything on this port does.
func (a *admin) stories(all []story.Story, most int) stories {
	shown := stories{Stories: append([]story.Story{}, all[:min(len(all), most)]...), Kept: a.program.Stories().Kept()}
	shown.LeftOut = len(all) - len(shown.Stories)
	for i := range shown.Stories {
		s := &shown.Stories[i]
		s.RemoteIP = a.anonymise(s.RemoteIP)
	}
	return shown
}

func (a *admin) serveExplain(w http.ResponseWriter, r *http.Request, id string) {
	found := a.program.Stories().Find(id)
	if len(found) == 0 {
		answer(w, r, http.StatusNotFound, failure{Error: unknownID(id, a.program.Stories().Kept())})
		return
	}
	answer(w, r, http.StatusOK, a.stories(found, maxStories))
}

func (a *admin) serveRejections(w http.ResponseWriter, r *http.Request, _ string) {
	answer(w, r, http.StatusOK, a.stories(a.program.Stories().Refusals(maxRejections), maxRejections))
}

// unknownID says for how long ids are kept.
func unknownID(id string, k story.Kept) string {
	return fmt.Sprintf("no call is known by the id %q; kept are %s, and %s. Nothing is kept over a restart. The id is that of the answer's X-Request-Id, or what the client sent as such",
		shorten(id), keptSince(k.Refusals, "refusals", k.RefusalsSince), keptSince(k.Others, "other calls", k.OthersSince))
}

func keptSince(n int, what string, since time.Time) string {
	if since.IsZero() {
		return fmt.Sprintf("all %d %s since the start", n, what)
	}
	return fmt.Sprintf("all %s since %s and some older ones, %d in all", what, since.Format(time.RFC3339), n)
}
