package telemetry

import (
	"log/slog"
	"strings"

	"example.com/forebay"
)

// maxValueBytes is how much of a route, a request id or an address a line shows.
// It is above what gates let through, and keeps the queue small for programs that
// call a gate with anything.
const maxValueBytes = 512

// Observer returns the observer that logs decisions, for gates and groups. It takes
// no lock while a storm is on, and never waits.
func (l *Log) Observer() forebay.Observer { return forebay.ObserverFunc(l.observe) }

func (l *Log) observe(e forebay.Event) {
	if !l.wants(&e) {
		return
	}
	at := clock()
	p := l.paces.of(paceKey{gate: e.Gate})
	if paced(&e) && !p.allow(l.now(at)) {
		l.leaveOut(p, 0)
		return
	}
	e.Route, e.RequestID, e.RemoteIP = clip(e.Route), clip(e.RequestID), clip(e.RemoteIP)
	l.send(line{at: at, pace: p, leftOut: p.left.Swap(0), event: e})
}

// wants reports whether the options in force ask for a line. A lease that is
// overdue is no decision, but it names a caller, and so "off" leaves it out too.
func (l *Log) wants(e *forebay.Event) bool {
	switch l.inForce.Load().Decisions {
	case DecisionsAll:
		return true
	case DecisionsRefused:
		return paced(e)
	}
	return false
}

// paced reports whether an event is of the kind that comes in storms.
func paced(e *forebay.Event) bool {
	return e.Kind == forebay.EventOverdue || e.Kind == forebay.EventDecided && e.Decision.Refused()
}

// clip cuts off what is too long, without keeping the whole of it in memory.
func clip(s string) string {
	if len(s) <= maxValueBytes {
		return s
	}
	return strings.Clone(s[:maxValueBytes])
}

// eventRecord is the line of an event. Each has the same keys; those that do not
// belong to its kind are empty or 0, and a release has no decision, so that each
// call's decision is in one line only.
func (l *Log) eventRecord(ln *line) slog.Record {
	e := &ln.event
	decision := ""
	if e.Kind == forebay.EventDecided {
		decision = e.Decision.String()
	}
	level := slog.LevelInfo
	if paced(e) {
		level = slog.LevelWarn
	}
	r := slog.NewRecord(ln.at, level, e.Kind.String(), 0)
	r.AddAttrs(
		slog.String("decision", decision),
		slog.String("gate", e.Gate),
		slog.String("route", e.Route),
		slog.String("lane", e.Lane),
		slog.String("request_id", e.RequestID),
		slog.String("remote_ip", l.Anonymise(e.RemoteIP)),
		slog.Int64("waited_ms", e.Waited.Milliseconds()),
		slog.Int64("held_ms", e.Held.Milliseconds()),
		slog.Int("in_flight", e.InFlight),
		slog.Int("limit", e.Limit),
	)
	return r
}

// leftOutRecord says at the end of a storm what no other line said.
func leftOutRecord(ln *line) slog.Record {
	r := slog.NewRecord(ln.at, slog.LevelWarn, "left out", 0)
	if ln.pace.of.message != "" {
		r.AddAttrs(slog.String("message", ln.pace.of.message))
	} else {
		r.AddAttrs(slog.String("gate", ln.pace.of.gate))
	}
	return r
}
