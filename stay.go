package forebay

import (
	"bufio"
	"context"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
)

// stay is a request behind its gates whose answer is watched: because its slot may end
// before the handler does, or after it, or because its body is still read ahead. It
// belongs to the handler's goroutine, as the answer does.
type stay struct {
	w       http.ResponseWriter
	r       *http.Request // with the context that stop ends
	call    Call
	lease   Lease
	hold    Hold
	streams Streams
	flow    *inflow                 // nil: nothing was read ahead
	stop    context.CancelCauseFunc // nil: nothing ends the context early
	limits  *limits                 // of an event stream; nil: none
	headers http.Header             // as they were before the handler

	begun   bool
	stream  bool  // it lasts as long as it likes, which says nothing about the backend
	refused error // the stream was: nothing of the handler's goes out any more
	kept    bool  // the slot is the connection's
}

// rulesOf returns the rules for a request that passes these gates.
func (s *stay) rulesOf(gates []*Gate) {
	for _, g := range gates {
		if c := g.settings.Load(); c.hasStay() {
			s.hold, s.streams = c.Hold, c.Streams
			if slices.Contains(gates, s.streams.Gate) {
				s.streams.Gate = nil // it would wait for its own slot
			}
			return
		}
	}
}

// run runs the handler.
func (s *stay) run(wants want, next func(http.ResponseWriter, *http.Request, Lease)) {
	r, done := wants.context(s.r, s.lease)
	defer done()
	s.r = r
	if s.streams.Gate != nil || s.streams.limited() {
		ctx, stop := context.WithCancelCause(s.r.Context())
		defer stop(nil)
		s.r, s.stop = s.r.WithContext(ctx), stop
	}
	if s.streams.Gate != nil {
		s.headers = s.w.Header().Clone()
	}
	outcome := OutcomeAborted
	defer func() {
		s.limits.stop()
		if !s.kept {
			s.lease.handBack(outcome)
		}
		if s.refused != nil {
			s.abortedByUs(recover())
		}
	}()
	next(watchedWriter(s), s.r, s.lease)
	if outcome = outcomeOf(s.r.Context()); outcome == OutcomeDone && s.stream {
		outcome = OutcomeIgnored
	}
}

// abortedByUs lets a handler end that aborts because its stream was refused: the refusal
// still has to go out, which an abort would cut off.
func (s *stay) abortedByUs(p any) {
	if p != nil && p != http.ErrAbortHandler {
		panic(p)
	}
}

// begins is called before anything of the answer goes out. An error: nothing may.
func (s *stay) begins(status int) error {
	if s.refused != nil {
		return s.refused
	}
	s.limits.moved()
	if s.begun {
		return nil
	}
	s.begun = true
	if s.hold == HoldFirstByte {
		s.giveBack()
	}
	if status == http.StatusOK && isEventStream(s.w.Header()) {
		return s.streamBegins()
	}
	return nil
}

func isEventStream(h http.Header) bool {
	const name = "text/event-stream"
	t := h.Get("Content-Type")
	return len(t) >= len(name) && strings.EqualFold(t[:len(name)], name)
}

// streamBegins applies the rules to an event stream.
func (s *stay) streamBegins() error {
	moved, err := s.move()
	if err != nil {
		return err
	}
	s.settle(moved)
	s.stream = true
	if s.streams.limited() {
		stop, c := s.stop, http.NewResponseController(s.w)
		s.limits = newLimits(s.streams, func(why error) {
			stop(why)
			_ = c.SetWriteDeadline(longAgo) // ends a write that waits for a client which does not read
		}, nil)
	}
	return nil
}

// move takes the slot that the stream moves to. If there is none the client is told, and
// the handler may say nothing more.
func (s *stay) move() (Lease, error) {
	if s.streams.Gate == nil {
		return Lease{}, nil
	}
	moved, err := s.streams.Gate.Acquire(s.r.Context(), s.call)
	if err == nil {
		return moved, nil
	}
	s.refused = err
	h := s.w.Header()
	clear(h) // of the stream
	maps.Copy(h, s.headers)
	Refuse(s.w, s.r, err)
	s.stop(err)
	return Lease{}, err
}

// settle gives back what the stream does not need any more, once it is certain.
func (s *stay) settle(moved Lease) {
	switch {
	case s.streams.Gate != nil:
		s.giveBack()
		s.lease = moved
	case s.streams.Release:
		s.giveBack()
	}
}

// giveBack gives the slot back, unless somebody has done so.
func (s *stay) giveBack() {
	if s.lease.Live() {
		s.lease.Release()
	}
}

// hijack hands the connection to the handler.
func (s *stay) hijack() (net.Conn, *bufio.ReadWriter, error) {
	if s.refused != nil {
		return nil, nil, s.refused
	}
	moved, err := s.move()
	if err != nil {
		return nil, nil, err
	}
	var early []byte
	if s.flow != nil {
		early = s.flow.interrupt(func() { _ = readUntil(s.w, s.r, longAgo) })
	}
	conn, rw, err := http.NewResponseController(s.w).Hijack()
	if err != nil {
		moved.Release()
		return conn, rw, err
	}
	s.begun = true
	if s.hold == HoldFirstByte {
		s.giveBack()
	}
	s.settle(moved)
	s.stream = true
	conn, rw = s.handOver(conn, rw, early)
	return conn, rw, nil
}

// handOver makes the connection what the handler gets.
func (s *stay) handOver(conn net.Conn, rw *bufio.ReadWriter, early []byte) (net.Conn, *bufio.ReadWriter) {
	if !s.streams.UntilClosed && !s.streams.limited() {
		if len(early) > 0 {
			rw = through(conn, rw, early)
		}
		return conn, rw
	}
	var lease Lease
	if s.streams.UntilClosed && s.lease.Live() {
		lease, s.kept = s.lease, true
	}
	conn = newStreamConn(conn, s.streams, lease, s.stop)
	return conn, through(conn, rw, early)
}
