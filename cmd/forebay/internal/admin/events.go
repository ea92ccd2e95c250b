package admin

import (
	"bytes"
	"encoding/json"
	"net/http"
	"sync"
	"time"
)

const (
	eventsPath = "/events"
	// maxStreams is how many may follow at once: a page on each screen of a room. Each
	// costs what is written to it; what is written is made once a second for all.
	maxStreams = 16
	// streamLife is how long one lasts: then the client comes again, and is asked for the
	// token again. Browsers do it by themselves.
	streamLife = 10 * time.Minute
	eachEvent  = time.Second
)

// feed is what those who follow are sent. Make one with newFeed.
type feed struct {
	each time.Duration
	life time.Duration
	room chan struct{} // one for each who follows

	mu   sync.Mutex // guards what follows
	made map[string]sent
}

// sent is an event, and when it was made.
type sent struct {
	text []byte
	at   time.Time
}

func newFeed() *feed {
	return &feed{each: eachEvent, life: streamLife, room: make(chan struct{}, maxStreams), made: map[string]sent{}}
}

// at returns the event of a moment. Those who ask within half of the time between two get
// the same.
func (f *feed) at(now time.Time, kind string, makeOne func() []byte) []byte {
	f.mu.Lock()
	defer f.mu.Unlock()
	if was := f.made[kind]; !now.IsZero() && now.Sub(was.at) < f.each/2 {
		return was.text
	}
	text := makeOne()
	f.made[kind] = sent{text, now}
	return text
}

// serveEvents follows the gates by server-sent events: "stats", what /stats says, or with
// ?as=page "page", what changes on the page.
func (a *admin) serveEvents(w http.ResponseWriter, r *http.Request, _ string) {
	kind, makeOne := "stats", a.statsEvent
	switch as := r.URL.Query().Get("as"); as {
	case "", "stats":
	case "page":
		kind, makeOne = "page", a.pageEvent
	default:
		answer(w, r, http.StatusBadRequest, failure{Error: "as is \"" + shorten(as) + "\"; it must be stats or page, or left out for stats"})
		return
	}
	select {
	case a.feed.room <- struct{}{}:
		defer func() { <-a.feed.room }()
	default:
		w.Header().Set("Retry-After", "10")
		answer(w, r, http.StatusServiceUnavailable, failure{Error: "too many follow already; ask /stats, or come again later"})
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	if r.Method != http.MethodHead {
		a.follow(w, r, kind, makeOne)
	}
}

// follow sends events until the client leaves or the stream is old enough.
func (a *admin) follow(w http.ResponseWriter, r *http.Request, kind string, makeOne func() []byte) {
	c := http.NewResponseController(w)
	_ = c.SetReadDeadline(time.Time{}) // that of the request would end the stream
	each, over := time.NewTicker(a.feed.each), time.NewTimer(a.feed.life)
	defer each.Stop()
	defer over.Stop()
	var now time.Time
	for {
		if _, err := w.Write(a.feed.at(now, kind, makeOne)); err != nil || c.Flush() != nil {
			return
		}
		select {
		case <-r.Context().Done():
			return
		case <-over.C:
			return
		case now = <-each.C:
		}
	}
}

func (a *admin) statsEvent() []byte { return event("stats", a.programStats()) }

func (a *admin) pageEvent() []byte {
	var main bytes.Buffer
	if err := page.ExecuteTemplate(&main, "main", a.pageView()); err != nil {
		return event("problem", "the page cannot be made: "+err.Error())
	}
	return event("page", main.String())
}

// event is one on the wire: its JSON has no line breaks.
func event(name string, v any) []byte {
	body, err := json.Marshal(v)
	if err != nil { // of numbers, strings and times there is none
		panic("admin: an event that is no JSON: " + err.Error())
	}
	return append(append([]byte("event: "+name+"\ndata: "), body...), "\n\n"...)
}
