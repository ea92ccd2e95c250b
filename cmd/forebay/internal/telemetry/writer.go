package telemetry

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"time"
	"unicode/utf8"
)

// write is the writer's goroutine, which [Log.Close] waits for. Nobody else touches
// the destination.
func (l *Log) write() {
	var flush <-chan time.Time // set while something left out is not yet said
	for {
		select {
		case ln := <-l.queue:
			if !l.put(&ln) {
				l.leaveOut(ln.pace, ln.leftOut)
			}
		case to := <-l.reopen:
			_ = l.out.change(to) // what it has taken is out of our hands
		case <-l.nudge:
			if flush == nil {
				flush = time.After(window)
			}
		case <-flush:
			flush = nil
			if l.sayLeftOut(false) {
				flush = time.After(window)
			}
		case <-l.closing:
			l.ended <- l.finish()
			return
		}
	}
}

// finish writes what came before the end.
func (l *Log) finish() error {
	for {
		select {
		case to := <-l.reopen:
			_ = l.out.change(to)
		case ln := <-l.queue:
			if !l.put(&ln) {
				l.leaveOut(ln.pace, ln.leftOut)
			}
		default:
			l.sayLeftOut(true)
			return l.out.to.Close()
		}
	}
}

// sayLeftOut writes a line for each pace that has left out lines, has been quiet
// for a whole window, and so has no other line to say it. At the end it does not
// wait for that. It reports whether some are left.
func (l *Log) sayLeftOut(end bool) (more bool) {
	at := clock()
	now := l.now(at)
	l.paces.each(func(p *pace) {
		if p.left.Load() == 0 {
			return
		}
		if !end && !(p.quiet(now) && p.allow(now)) {
			more = true
			return
		}
		if n := p.left.Swap(0); n > 0 {
			ln := line{at: at, pace: p, leftOut: n, handler: l.root}
			r := leftOutRecord(&ln)
			ln.record = &r
			if !l.put(&ln) {
				p.left.Add(n) // a line about lines is none itself
				more = true
			}
		}
	})
	return more
}

// put formats one line and writes it, or counts that it could not.
func (l *Log) put(ln *line) bool {
	r, h := ln.record, ln.handler
	if r == nil {
		made := l.eventRecord(ln)
		r, h = &made, l.root
	}
	if ln.leftOut > 0 {
		r.AddAttrs(slog.Uint64("left_out", ln.leftOut))
	}
	r.Time = r.Time.UTC()
	l.out.level = r.Level
	if h.Handle(context.Background(), *r) != nil {
		l.failed.Add(1)
		return false
	}
	return true
}

// out stands between the formatter, which stays, and the destination, which may
// change.
type out struct {
	to    sink
	level slog.Level // of the line being written
}

func (o *out) change(to sink) error {
	old := o.to
	o.to = to
	return old.Close()
}

// Write takes one whole line.
func (o *out) Write(p []byte) (int, error) {
	if err := o.to.writeLine(o.level, harmless(p)); err != nil {
		return 0, err
	}
	return len(p), nil
}

// harmless escapes what JSON allows in a string but what a terminal obeys: DEL, the
// C1 controls, and the marks that turn the direction of text. All of it can stand in
// strings only, so the escapes are JSON.
func harmless(text []byte) []byte {
	if !bytes.ContainsFunc(text, obeyed) {
		return text
	}
	safe := make([]byte, 0, len(text)+16)
	for len(text) > 0 {
		r, n := utf8.DecodeRune(text)
		if obeyed(r) {
			safe = fmt.Appendf(safe, `\u%04x`, r)
		} else {
			safe = append(safe, text[:n]...)
		}
		text = text[n:]
	}
	return safe
}

func obeyed(r rune) bool {
	return r >= 0x7f && r <= 0x9f || r >= 0x200e && r <= 0x200f || r >= 0x2028 && r <= 0x202e || r >= 0x2066 && r <= 0x2069
}
