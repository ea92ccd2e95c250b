package forebay

import "time"

// Event reports one decision or one release, or a lease that is held for longer
// than [Config.MaxHold]. A call through a [Chain] makes one decision, and a release
// at each of its gates. An event is delivered by value, after the fact and outside
// every lock, so events of different calls may arrive in another order than
// things happened; the figures in one are those of the instant it reports. Fields
// that do not belong to its kind are zero.
type Event struct {
	Kind      EventKind
	Gate      string        // empty for a request that passed no gate
	Route     string        // the pattern of the route, or what [Call.Route] said
	RequestID string        // empty when the call had none
	RemoteIP  string        // as the call gave it
	Lane      string        // one of [Config.Lanes], or empty
	Decision  Decision      // of [EventDecided]
	Outcome   Outcome       // of [EventReleased]
	Cost      int           // units of the call; 0 for a request that passed no gate
	Waited    time.Duration // in line, until the decision
	Held      time.Duration // of [EventReleased] and [EventOverdue]; 0 unless [Config.Track]
	InFlight  int           // units that ran just after; of a release, once the slot was handed on
	Waiting   int           // calls in line just after
	Limit     int           // in force just after; 0: closed
}

// EventKind says what an [Event] reports.
type EventKind uint8

// The kinds of event.
const (
	EventDecided  EventKind = iota // a call got its decision
	EventReleased                  // a lease was given back
	EventOverdue                   // a lease is held for longer than MaxHold; once for each lease
)

var eventKinds = [...]string{"decided", "released", "overdue"}

// String returns "decided", "released" or "overdue".
func (k EventKind) String() string {
	if int(k) < len(eventKinds) {
		return eventKinds[k]
	}
	return "unknown"
}

// Observer is told of the events of the gates that it is configured for. It is
// called by the goroutine whose call it reports, outside every lock, by many at
// once, and so must be safe for concurrent use; what it costs the call pays. A
// panic in it is contained and counted in [Stats.ObserverPanics].
type Observer interface {
	// Observe is told of one event, which it may keep.
	Observe(Event)
}

// ObserverFunc makes a function an [Observer].
type ObserverFunc func(Event)

// Observe calls f.
func (f ObserverFunc) Observe(e Event) { f(e) }

// emit tells every observer.
func (g *Gate) emit(s *settings, e Event) {
	e.Gate = g.name
	for _, o := range s.Observers {
		g.tell(o, e)
	}
}

// emitAccepted reports that a call got its lease, which goes back if an observer ends
// the goroutine instead of returning: the caller will never see it.
func (g *Gate) emitAccepted(s *settings, call *Call, ans answer, l Lease) {
	if len(s.Observers) == 0 {
		return
	}
	told := false
	defer func() {
		if !told {
			l.Release()
		}
	}()
	g.emitDecision(s, call, Accepted, ans.waited, ans.gauge)
	told = true
}

func (g *Gate) tell(o Observer, e Event) {
	defer func() {
		if recover() != nil {
			g.observerPanics.Add(1)
		}
	}()
	o.Observe(e)
}
