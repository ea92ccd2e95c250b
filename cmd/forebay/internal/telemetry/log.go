package telemetry

import (
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"example.com/forebay"
)

const (
	// queueLength is how many lines may wait for the writer: half a MiB, and the
	// burst of a program that logs all decisions of 1000 requests at once.
	queueLength = 1024
	// closePatience is how long Close waits for a destination that takes no lines.
	closePatience = 5 * time.Second
)

// Log writes lines to one destination at a time. Make one with [Open] and give it
// back with [Log.Close]; it is safe for concurrent use.
type Log struct {
	inForce atomic.Pointer[Options] // checked
	salt    []byte
	began   time.Time
	paces   paces
	failed  atomic.Uint64 // lines that the destination did not take

	queue   chan line
	reopen  chan sink     // a new destination for the writer; the latest wins
	nudge   chan struct{} // tells the writer that something was left out
	closing chan struct{} // closed by Close
	ended   chan error    // what came of closing the last destination

	out  *out         // of the writer's goroutine
	root slog.Handler // formats, in the writer's goroutine

	mu     sync.Mutex // guards closed, and sending to reopen
	closed bool
}

// line is one that waits for the writer: an event, or a record of the program.
type line struct {
	at      time.Time
	pace    *pace
	leftOut uint64 // said by this line

	event forebay.Event

	record  *slog.Record // nil for an event
	handler slog.Handler // of the record
}

// Open returns a log that writes as the options say, or every mistake in them, or
// why the destination cannot be had.
func Open(o Options) (*Log, error) {
	o, err := o.checked()
	if err != nil {
		return nil, err
	}
	to, err := openSink(o)
	if err != nil {
		return nil, err
	}
	return start(o, to), nil
}

// start starts the writer.
func start(o Options, to sink) *Log {
	l := &Log{
		salt: make([]byte, 32), began: clock(),
		queue: make(chan line, queueLength), reopen: make(chan sink, 1), nudge: make(chan struct{}, 1),
		closing: make(chan struct{}), ended: make(chan error, 1),
		out: &out{to: to},
	}
	_, _ = rand.Read(l.salt) // it never fails
	l.root = slog.NewJSONHandler(l.out, nil)
	l.inForce.Store(&o)
	go l.write()
	return l
}

// Reconfigure puts other options in force. Lines that are queued go to the new
// destination, the old one is closed, and what was counted goes on. On error nothing
// has changed.
func (l *Log) Reconfigure(o Options) error {
	o, err := o.checked()
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return errors.New("telemetry: the log is closed")
	}
	if !o.sameSink(*l.inForce.Load()) {
		to, err := openSink(o)
		if err != nil {
			return err
		}
		l.switchLocked(to)
	}
	l.inForce.Store(&o)
	return nil
}

// switchLocked hands the writer a destination, in place of one that it has not taken
// up yet because it is stuck with the last.
func (l *Log) switchLocked(to sink) {
	select {
	case unused := <-l.reopen:
		_ = unused.Close() // nothing was written to it
	default:
	}
	l.reopen <- to // there is room: only this function sends
}

// Close writes what is queued, says what was left out, and closes the destination.
// One that takes no lines is given up after 5 s, which is an error. Observers and
// loggers may be used afterwards; their lines are lost.
func (l *Log) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil
	}
	l.closed = true
	close(l.closing)
	select {
	case err := <-l.ended:
		return err
	case <-time.After(closePatience):
		return fmt.Errorf("telemetry: %s took no lines for %v; what was queued is lost", l.inForce.Load().To, closePatience)
	}
}

// Anonymise returns how the log shows an address: in the way that is in force, and
// with this log's key. See the function of the same name.
func (l *Log) Anonymise(ip string) string {
	return Anonymise(l.inForce.Load().RemoteIP, ip, l.salt)
}

// LeftOut returns how many lines about a gate's calls were not written so far. The
// gate "" stands for calls that passed no gate and for what the program itself had
// to say.
func (l *Log) LeftOut(gate string) uint64 {
	n := uint64(0)
	l.paces.each(func(p *pace) {
		if p.of.gate == gate {
			n += p.total.Load()
		}
	})
	return n
}

// send queues a line, or leaves it out if there is no room.
func (l *Log) send(ln line) {
	select {
	case <-l.closing: // first, since a select takes any case that is ready
		ln.pace.leaveOut(ln.leftOut)
		return
	default:
	}
	select {
	case l.queue <- ln:
	default:
		l.leaveOut(ln.pace, ln.leftOut)
	}
}

// leaveOut counts a line that is not written and wakes the writer, who says so once
// no other line does.
func (l *Log) leaveOut(p *pace, said uint64) {
	if !p.leaveOut(said) {
		return
	}
	select {
	case l.nudge <- struct{}{}:
	default: // it is woken already
	}
}

// now returns a time as paces count it: since the start, by the monotonic clock.
func (l *Log) now(t time.Time) time.Duration { return t.Sub(l.began) }
