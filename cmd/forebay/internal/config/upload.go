package config

import (
	"fmt"
	"strings"

	"example.com/forebay"
	"go.yaml.in/yaml/v4"
)

// DefaultBodyFirst is how large a body may be that comes before its slot, where a file
// says acquire: body alone.
const DefaultBodyFirst = 64 << 10

const maxBodyFirst = 1 << 30 // what is held of one request

// acquire reads when a request asks for its slot: one word, or the bound of a body.
func (r *gatesReader) acquire(v value, u *forebay.Upload) {
	if v.Kind == yaml.ScalarNode {
		if w, ok := r.word(v, "headers", "body"); ok && w == "body" {
			u.BodyFirst = DefaultBodyFirst
		}
		return
	}
	there := r.mapping(v, "gates.NAME.acquire", []key{
		{"body", func(v value) { u.BodyFirst, _ = r.size(v, 1<<10, maxBodyFirst) }},
	})
	if len(there) == 0 && v.Kind == yaml.MappingNode && len(v.Content) == 0 {
		r.wrongValue(v, "write "+mappingExamples["gates.NAME.acquire"], "is empty")
	}
}

// upload reads how fast bodies have to come.
func (r *gatesReader) upload(v value, u *forebay.Upload) {
	there := r.mapping(v, "gates.NAME.upload", []key{
		{"min_rate", func(v value) { u.MinRate, _ = r.size(v, 1<<10, maxBodyFirst) }},
		{"grace", func(v value) { r.durationInto(&u.Grace, v, shortest, "5s") }},
		{"max_time", func(v value) { r.durationInto(&u.MaxTime, v, shortest, "1m") }},
	})
	if len(there) == 0 && v.Kind == yaml.MappingNode && len(v.Content) == 0 {
		r.wrongValue(v, "write "+mappingExamples["gates.NAME.upload"], "is empty")
	}
	if _, ok := there["min_rate"]; !ok && u.Grace > 0 && !r.partial {
		r.wrongAt(r.config.at[v.path+".grace"], "grace is given without min_rate, so nothing is graced", "set min_rate as well, such as 1KiB, or max_time")
		u.Grace = 0
	}
}

// intake reads how much is taken in for requests that do not run.
func (d *decoder) intake(v value) {
	in := &d.config.Intake
	sizeInto := func(n *int64, v value, most int64) {
		if size, ok := d.size(v, 1<<10, most); ok {
			*n = size
		}
	}
	d.mapping(v, "intake", []key{
		{"max_bytes", func(v value) { sizeInto(&in.MaxBytes, v, 1<<40) }},
		{"read_ahead", func(v value) { sizeInto(&in.ReadAhead, v, maxBodyFirst) }},
		{"discard", func(v value) { sizeInto(&in.Discard, v, 1<<40) }},
		{"discard_time", func(v value) { d.discardTime(v) }},
		{"discard_total", func(v value) { sizeInto(&in.DiscardTotal, v, 1<<40) }},
	})
}

func (d *decoder) discardTime(v value) {
	n, ok := d.duration(v, shortest, longest, "2s")
	switch {
	case !ok:
	case n > maxDiscardTime:
		d.wrongValue(v, fmt.Sprintf("write 1ms to %s", FormatDuration(maxDiscardTime)), "is %s", v.Value)
	default:
		d.config.Intake.DiscardTime = n
	}
}

// Library returns the intake as the library is given it; its bytes are counted by b.
func (in Intake) Library(b *forebay.Bytes) forebay.IntakeConfig {
	return forebay.IntakeConfig{
		Bytes: b, ReadAhead: in.ReadAhead, Discard: in.Discard, DiscardTime: in.DiscardTime, DiscardTotal: in.DiscardTotal,
	}
}

// String returns the intake as a file says it.
func (in Intake) String() string {
	return fmt.Sprintf("max_bytes: %s, read_ahead: %s, discard: %s, discard_time: %s, discard_total: %s",
		sizeText(in.MaxBytes), sizeText(in.ReadAhead), sizeText(in.Discard), FormatDuration(in.DiscardTime), sizeText(in.DiscardTotal))
}

// uploadYAML is acquire and upload as a file says them.
func (g Gate) uploadYAML() (parts []string) {
	u := g.Upload
	if u.BodyFirst > 0 {
		parts = append(parts, "acquire: {body: "+sizeText(u.BodyFirst)+"}")
	}
	var upload []string
	if u.MinRate > 0 {
		upload = append(upload, "min_rate: "+sizeText(u.MinRate))
	}
	if u.Grace > 0 {
		upload = append(upload, "grace: "+FormatDuration(u.Grace))
	}
	if u.MaxTime > 0 {
		upload = append(upload, "max_time: "+FormatDuration(u.MaxTime))
	}
	if len(upload) > 0 {
		parts = append(parts, "upload: {"+strings.Join(upload, ", ")+"}")
	}
	return parts
}

// uploadKeys say how bodies come, and what is taken in of them.
var uploadKeys = []Key{
	{"gates.NAME.acquire", "headers: a request asks for its slot when its headers are there; body: when its body is, or a mapping with the bound", "headers",
		"nothing is held here, and refusals come before the body. body is for clients that send slowly: while a body comes it takes memory, counted by intake, and no slot", "", "body"},
	{"gates.NAME.acquire.body", "a size, 1KiB to 1GiB: how large a body may be that comes first. A larger one, one for which intake has no room, and one whose client waits to be told to go on (Expect: 100-continue) come while the slot is held", "64KiB",
		"it holds a form, or a call of an API, and a thousand of them fit into intake.max_bytes",
		"Half: more bodies trickle in while they hold a slot. Twice: half as many fit.", "256KiB"},
	{"gates.NAME.upload.min_rate", "a size, 1KiB to 1GiB: what of a body has to come in a second, on average over the time in which it is waited for; slower ones are answered 408", "none",
		"callers on bad networks are real; where slots are dear 1KiB ends only what trickles on purpose",
		"Half: who trickles holds a slot for longer. Twice: callers on bad networks are cut.", "1KiB"},
	{"gates.NAME.upload.grace", "a duration, 1ms to 24h: how much longer than by min_rate a body may take; only with min_rate", "5s",
		"a fast client behind a bad network stalls for that long",
		"Half: a lost packet or two cuts an upload. Twice: who sends nothing holds a slot for twice as long.", "5s"},
	{"gates.NAME.upload.max_time", "a duration, 1ms to 24h: how long a body is waited for altogether", "no bound",
		"a large upload takes its time; min_rate tells it from one that trickles",
		"Half: large uploads are cut. Twice: slots are held for twice as long.", "1m"},
	{"intake.max_bytes", "a size, 1KiB to 1024GiB: the memory for what is held of requests, of all gates together", "64MiB",
		"it is a small part of any machine, and a thousand bodies of 64KiB",
		"Half: with many in line fewer bodies are read ahead, and who leaves may be noticed later. Twice: mind the memory.", "64MiB"},
	{"intake.read_ahead", "a size, 1KiB to 1GiB: how much of one body is read ahead while its request waits in line, so that it shows when the caller leaves", "64KiB",
		"nearly all bodies are smaller; of larger ones the socket is asked, on Linux",
		"Half: more callers that leave are noticed by their socket alone. Twice: half as many bodies fit.", "64KiB"},
	{"intake.discard", "a size, 1KiB to 1024GiB: how much of the rest of a refused request's body is taken in and thrown away", "64MiB",
		"a client that writes everything before it reads sees its refusal only if somebody takes in what it writes",
		"Half: clients with larger uploads see a broken connection. Twice: refusals cost up to twice the bandwidth.", "64MiB"},
	{"intake.discard_time", "a duration, 1ms to 1m: the same in time", "2s",
		"it is enough for a client on a good network, and does not delay a stop",
		"Half: more clients see a broken connection. Twice: refused connections last for twice as long.", "2s"},
	{"intake.discard_total", "a size, 1KiB to 1024GiB: the same for all connections at one time; what is promised counts", "1GiB",
		"sixteen of the largest uploads at once; beyond it connections are closed at once",
		"Half: in a storm of uploads fewer clients see their refusal. Twice: it costs more bandwidth.", "1GiB"},
}
