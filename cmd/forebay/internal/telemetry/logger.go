package telemetry

import (
	"context"
	"log/slog"
)

// Logger returns the logger for what the program itself has to say: it started, a
// reload failed. Its lines go the way of all others and may be left out only when
// the destination takes none.
func (l *Log) Logger() *slog.Logger {
	return slog.New(&queuedHandler{log: l, inner: l.root})
}

// Paced returns a logger for what clients or the upstream can cause any number of
// times: each message, which must be a constant, makes at most ten lines a second,
// with the count of what was left out on the next.
func (l *Log) Paced() *slog.Logger {
	return slog.New(&queuedHandler{log: l, inner: l.root, paced: true})
}

// queuedHandler hands records to the writer, who has them formatted by inner.
type queuedHandler struct {
	log   *Log
	inner slog.Handler
	paced bool
}

// Enabled reports whether records of the level are written: from Info on.
func (h *queuedHandler) Enabled(_ context.Context, level slog.Level) bool {
	return level >= slog.LevelInfo
}

// Handle queues the record.
func (h *queuedHandler) Handle(_ context.Context, r slog.Record) error {
	r = r.Clone() // the writer adds to it
	p := h.log.paces.of(paceKey{})
	if h.paced {
		p = h.log.paces.of(paceKey{message: r.Message})
		if !p.allow(h.log.now(clock())) {
			h.log.leaveOut(p, 0)
			return nil
		}
	}
	h.log.send(line{at: r.Time, pace: p, leftOut: p.left.Swap(0), record: &r, handler: h.inner})
	return nil
}

// WithAttrs returns a handler whose records have these attributes.
func (h *queuedHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &queuedHandler{log: h.log, inner: h.inner.WithAttrs(attrs), paced: h.paced}
}

// WithGroup returns a handler whose records' attributes stand in a group.
func (h *queuedHandler) WithGroup(name string) slog.Handler {
	return &queuedHandler{log: h.log, inner: h.inner.WithGroup(name), paced: h.paced}
}
