package story

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Story is what became of one call.
type Story struct {
	ID        string    `json:"id"` // of this story alone
	RequestID string    `json:"request_id"`
	ClientID  string    `json:"client_id,omitempty"` // what the client called it, if that is another
	At        time.Time `json:"at"`                  // of the decision; of an accepted call within a second

	Gate  string   `json:"gate"` // that decided; empty: the route is exempt
	Route string   `json:"route"`
	Gates []string `json:"gates"` // that the route names, in their order
	Lane  string   `json:"lane"`  // empty: it had none, or the gate does not know it

	// RemoteIP is the caller's address, whole: whoever shows it cuts it.
	RemoteIP string `json:"remote_ip"`

	Decision string `json:"decision"`
	Why      string `json:"why"` // in words

	Limit     int   `json:"limit"` // in force; 0: closed
	InFlight  int   `json:"in_flight"`
	Waiting   int   `json:"waiting"`         // in line just after
	Place     int   `json:"place,omitempty"` // in line, that it would have had; 0: it had one, or needed none
	Cost      int   `json:"cost"`
	WaitedMS  int64 `json:"waited_ms"`
	MaxWaitMS int64 `json:"max_wait_ms"`

	Status     int    `json:"status,omitempty"`        // of the refusal; 0: it is not answered yet
	RetryAfter int    `json:"retry_after_s,omitempty"` // seconds
	RetryWhy   string `json:"retry_after_why,omitempty"`

	Ended  string `json:"ended,omitempty"` // how an accepted call ended: done, aborted …; empty: it runs, or is not known
	HeldMS int64  `json:"held_ms,omitempty"`

	Holders *Holders `json:"holders,omitempty"` // of the slots, of a refusal
}

// Holders says who held the slots of a gate.
type Holders struct {
	BeforeMS int64          `json:"before_ms"` // the decision, that they were looked at
	Calls    int            `json:"calls"`
	Routes   []RouteHolders `json:"routes"`
	Others   int            `json:"others,omitempty"` // calls of further routes
}

// RouteHolders are those of one route.
type RouteHolders struct {
	Route    string `json:"route"`
	Calls    int    `json:"calls"`
	OldestMS int64  `json:"oldest_ms"` // how long the oldest has held
}

// Kept says which stories there are.
type Kept struct {
	Refusals      int       `json:"refusals"`
	RefusalsSince time.Time `json:"refusals_since,omitzero"` // every one after it is kept; zero: every one since the start
	Others        int       `json:"others"`                  // accepted calls, and callers that left
	OthersSince   time.Time `json:"others_since,omitzero"`
}

// Kept says which stories there are now.
func (b *Book) Kept() Kept {
	b.mu.Lock()
	defer b.mu.Unlock()
	return Kept{b.refused.len(), instant(b.refused.whole), b.others.len(), instant(b.others.whole)}
}

func (s *shelf) len() (n int) {
	for _, own := range s.byGate {
		n += pages*(len(own)-1) + own[len(own)-1].n
	}
	return n
}

func instant(nanos int64) time.Time {
	if nanos == 0 {
		return time.Time{}
	}
	return time.Unix(0, nanos).UTC()
}

// Find returns the stories of an id, the latest first: the one with that id, those of the
// requests with that id, and those that their clients called so.
func (b *Book) Find(id string) []Story {
	if id == "" {
		return nil
	}
	own := b.serialOf(id)
	return b.collect(func(p *page) bool { return p.serial == own || p.id == id || p.asked == id })
}

// Refusals returns the latest refusals, the latest first, of all gates.
func (b *Book) Refusals(n int) []Story {
	b.mu.Lock()
	found := b.refused.latest(n)
	b.mu.Unlock()
	latestFirst(found)
	return b.told(found[:min(n, len(found))])
}

func (b *Book) collect(wanted func(*page) bool) []Story {
	b.mu.Lock()
	var found []page
	for _, s := range [...]*shelf{&b.refused, &b.others} {
		for p := range s.all() {
			if wanted(p) {
				found = append(found, *p)
			}
		}
	}
	b.mu.Unlock()
	latestFirst(found)
	return b.told(found)
}

func latestFirst(found []page) {
	slices.SortFunc(found, func(a, b page) int { return cmp.Compare(b.serial, a.serial) })
}

func (b *Book) told(found []page) []Story {
	all := make([]Story, len(found))
	for i := range found {
		all[i] = b.tell(&found[i])
	}
	return all
}

// idOf is a story's own id: the run's tag, so that an id of another run is none here, and
// the serial number.
func (b *Book) idOf(serial uint64) string { return b.tag + "." + strconv.FormatUint(serial, 36) }

func (b *Book) serialOf(id string) uint64 {
	number, isOurs := strings.CutPrefix(id, b.tag+".")
	serial, err := strconv.ParseUint(number, 36, 64)
	if !isOurs || err != nil || b.idOf(serial) != id {
		return 0 // no story has it
	}
	return serial
}

// tell makes the story of what is kept.
func (b *Book) tell(p *page) Story {
	s := Story{
		ID: b.idOf(p.serial), RequestID: p.id, ClientID: p.asked, At: instant(p.at),
		Gate: p.gate, Route: p.route, Gates: []string{}, Lane: p.lane, RemoteIP: p.ip,
		Decision: p.decision.String(), Why: p.why(),
		Limit: int(p.limit), InFlight: int(p.inFlight), Waiting: int(p.waiting), Place: p.wouldBe(), Cost: int(p.cost),
		WaitedMS: p.waited.Milliseconds(), Status: int(p.status), RetryAfter: int(p.retry), RetryWhy: p.whyRetry(),
	}
	if p.rules != nil {
		s.MaxWaitMS = p.rules.maxWait.Milliseconds()
		s.Gates = append(s.Gates, p.rules.routes[p.route]...)
	}
	if p.released {
		s.Ended, s.HeldMS = p.outcome.String(), p.held.Milliseconds()
	}
	if p.picture != nil {
		s.Holders = p.picture.shown(p.at)
	}
	return s
}

func (p *picture) shown(at int64) *Holders {
	h := &Holders{BeforeMS: time.Duration(at - p.at).Milliseconds(), Calls: p.calls, Routes: []RouteHolders{}, Others: p.others}
	for _, r := range p.routes {
		h.Routes = append(h.Routes, RouteHolders{r.route, r.calls, max(0, time.Duration(p.at-r.oldest.UnixNano()).Milliseconds())})
	}
	return h
}
