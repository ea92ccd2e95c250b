package config

import (
	"fmt"
	"slices"
	"strings"

	"example.com/forebay"
	"go.yaml.in/yaml/v4"
)

// The words for a stream's slot, besides the name of a gate.
const (
	streamsHold    = "hold"
	streamsRelease = "release"
)

// holdWords are those of [forebay.Hold], in its order.
var holdWords = []string{forebay.HoldHandler.String(), forebay.HoldFirstByte.String(), forebay.HoldUpstreamDone.String()}

// hold reads until when a request keeps its slot.
func (r *gatesReader) hold(v value, g *Gate) {
	if w, ok := r.word(v, holdWords...); ok {
		g.Hold = forebay.Hold(slices.Index(holdWords, w))
	}
}

// streams reads what becomes of the slot of a stream: one word, or that with limits.
func (r *gatesReader) streams(v value, g *Gate) {
	if v.Kind == yaml.ScalarNode {
		r.streamSlot(v, g)
		return
	}
	there := r.mapping(v, "gates.NAME.streams", []key{
		{"slot", func(v value) { r.streamSlot(v, g) }},
		{"max_life", func(v value) { r.durationInto(&g.Streams.MaxLife, v, shortest, "1h") }},
		{"max_idle", func(v value) { r.durationInto(&g.Streams.MaxIdle, v, shortest, "5m") }},
	})
	if len(there) == 0 && v.Kind == yaml.MappingNode && len(v.Content) == 0 {
		r.wrongValue(v, "write "+mappingExamples["gates.NAME.streams"], "is empty")
	}
	if l := g.Streams; l.MaxLife > 0 && l.MaxIdle > l.MaxLife {
		r.wrongAt(r.config.at[v.path+".max_idle"], fmt.Sprintf("max_idle is %s, above max_life, which is %s, and so ends nothing", FormatDuration(l.MaxIdle), FormatDuration(l.MaxLife)),
			"write a max_idle below it, or leave it out")
	}
}

// streamSlot reads where a stream has its slot. Gates are looked up when all are known.
func (r *gatesReader) streamSlot(v value, g *Gate) {
	s, ok := r.text(v, "hold, release, or the name of a gate")
	if !ok {
		return
	}
	r.streamsTo = append(r.streamsTo, streamsTo{v, g.Name})
	switch s {
	case streamsHold:
	case streamsRelease:
		g.Streams.Release = true
	default:
		g.StreamsGate = s
	}
}

// streamsTo is what a gate says of its streams' slots.
type streamsTo struct {
	value
	gate string
}

// checkStreams finds gates that streams cannot move to.
func (r *gatesReader) checkStreams() {
	if r.partial {
		return
	}
	for _, to := range r.streamsTo {
		isWord := to.Value == streamsHold || to.Value == streamsRelease
		known := slices.Contains(r.names, to.Value)
		switch {
		case isWord && known:
			r.wrong(to.Node, fmt.Sprintf("streams %s can mean the word or the gate of that name", to.Value), "give the gate another name")
		case isWord:
		case !known:
			r.wrong(to.Node, fmt.Sprintf("there is no gate %s", shorten(to.Value)), r.streamsRemedy(to.Value))
		case to.Value == to.gate:
			r.wrong(to.Node, fmt.Sprintf("streams of gate %s are to move to that gate itself", shorten(to.gate)), "write hold, or the name of another gate")
		}
	}
	for _, route := range r.config.Routes {
		r.checkStreamsOf(route)
	}
}

func (r *gatesReader) streamsRemedy(name string) string {
	if near := r.nearest(name, append([]string{streamsHold, streamsRelease}, r.names...)); near != "" {
		return fmt.Sprintf("did you mean %s?", near)
	}
	return "write hold, release, or a gate that is declared under gates"
}

// checkStreamsOf finds a chain in which streams are to move to a gate that their request
// has passed: it would wait for its own slot.
func (r *gatesReader) checkStreamsOf(route Route) {
	for _, name := range route.Gates {
		g := r.config.Gate(name)
		if g == nil || g.StreamsGate == "" || g.StreamsGate == name || !slices.Contains(route.Gates, g.StreamsGate) {
			continue
		}
		r.wrongAt(route.Pos, fmt.Sprintf("requests of the route %s pass gate %s, and their streams are to move to it, by gate %s", shorten(route.Match), shorten(g.StreamsGate), shorten(name)),
			"let streams move to a gate that the route does not pass")
	}
}

// holdYAML is hold and streams as a file says them.
func (g Gate) holdYAML() (parts []string) {
	if g.Hold != forebay.HoldHandler {
		parts = append(parts, "hold: "+g.Hold.String())
	}
	var streams []string
	switch {
	case g.StreamsGate != "":
		streams = append(streams, "slot: "+quote(g.StreamsGate))
	case g.Streams.Release:
		streams = append(streams, "slot: "+streamsRelease)
	}
	if g.Streams.MaxLife > 0 {
		streams = append(streams, "max_life: "+FormatDuration(g.Streams.MaxLife))
	}
	if g.Streams.MaxIdle > 0 {
		streams = append(streams, "max_idle: "+FormatDuration(g.Streams.MaxIdle))
	}
	if len(streams) > 0 {
		parts = append(parts, "streams: {"+strings.Join(streams, ", ")+"}")
	}
	return parts
}

// slotKeys say when a slot is taken and given back.
var slotKeys = []Key{
	{"gates.NAME.hold", "handler: until the answer has been handed on; upstream_done: until the upstream has ended it, which goes into the spool meanwhile; first_byte: until it begins", "handler",
		"no part of an answer is kept here for its client. upstream_done is for clients that read slowly: the slot is held for exactly as long as the backend works. first_byte is for a backend whose work is done when its answer begins", "", "upstream_done"},
	{"gates.NAME.streams", "hold, release, the name of a gate, or a mapping: of WebSockets and other upgrades, and of answers of type text/event-stream. In a chain the first gate that has hold or streams decides for all", "hold",
		"nobody exceeds the limit. But streams last, and as many as there are slots keep everybody else out: give them a gate of their own", "", "release"},
	{"gates.NAME.streams.slot", "hold: until the stream ends; release: it is given back as the stream begins; the name of a gate: the stream takes one there instead, and is refused as that gate refuses", "hold",
		"see streams. A gate of that name must be none that the same request passes", "", "release"},
	{"gates.NAME.streams.max_life", "a duration, 1ms to 24h: how long a stream may last", "no limit",
		"who ends a stream makes its client come back, and not every client does",
		"Half: clients come back twice as often. Twice: those that nobody looks at any more hold their slot for twice as long.", "1h"},
	{"gates.NAME.streams.max_idle", "a duration, 1ms to 24h: how long a stream may go without a byte in either direction, an event stream without one to the client", "no limit",
		"a stream may be silent by design; set it above the interval at which either side sends something to show that it is there",
		"Half: streams that are only quiet end. Twice: clients that vanished hold their slot for twice as long.", "5m"},
}
