package admit

import (
	"slices"
)

// hearFromLedger is an event of a machine that an outer ledger feeds.
func (h *history) hearFromLedger() {
	if !h.model.cfg.Ledger {
		return
	}
	n := h.next(4)
	switch h.next(16) {
	case 0, 1, 2, 3:
		h.say("feed %d", n)
		h.m.Feed(h.now, n)
		h.model.feed(h.now, n)
	case 4:
		got, want := h.m.Take(h.now, n), h.model.take(h.now, n)
		h.say("take %d -> %d", n, got)
		if got != want {
			h.fail("took %d, model %d", got, want)
		}
	case 5, 6:
		on := h.next(2) == 0
		h.say("return %v", on)
		h.m.Return(h.now, on)
		h.model.giveBackOrNot(h.now, on)
	case 7, 8:
		h.fetch()
	case 9, 10:
		last := h.model.ledger.joined - uint64(min(n, int(h.model.ledger.joined)))
		h.say("answered %d", last)
		h.m.Answered(h.now, last)
		h.model.hear(h.now, last)
	case 11:
		h.say("renumber")
		h.m.Renumber(h.now)
		h.model.renumber()
	default:
		h.loseTouch(n)
	}
}

func (h *history) fetch() {
	want := h.model.ledger.back
	h.model.ledger.back = 0
	got := h.m.Fetch(h.now)
	h.say("fetch -> %d", got)
	if got != want {
		h.fail("fetched %d, model %d", got, want)
	}
}

// loseTouch is an event of a ledger that is hard to reach, or is reached again.
func (h *history) loseTouch(n int) {
	switch h.next(8) {
	case 0:
		h.say("expire")
		h.m.Expire(h.now)
		h.model.ledger.over = true
		h.model.fed(h.now)
	case 1, 2, 3:
		h.say("renew")
		h.m.Renew(h.now)
		if h.model.ledger.over {
			h.model.ledger.over = false
			h.model.fed(h.now)
		}
	case 4:
		h.say("lapse")
		h.m.Lapse(h.now)
		h.model.ledger.lent, h.model.ledger.back = 0, 0
		h.model.fed(h.now)
	case 5:
		refuse := h.next(3) == 0
		h.say("alone %d %v", n, refuse)
		h.m.Alone(h.now, n, refuse)
		h.model.goAlone(h.now, n, refuse)
	case 6:
		h.say("together")
		h.m.Together(h.now)
		h.model.ledger.away, h.model.ledger.refuse = false, false
		h.model.fed(h.now)
	case 7:
		h.retract()
	}
}

// retract takes back a grant of one unit that was a decision.
func (h *history) retract() {
	i := slices.IndexFunc(h.out, func(c outCall) bool { return c.cost == 1 })
	if i < 0 || h.m.Counts().Decisions[Granted] == 0 {
		return
	}
	c := h.out[i]
	h.out = slices.Delete(h.out, i, i+1)
	h.asked-- // it is decided afresh, or not
	h.say("retract")
	h.m.Retract(h.now, c.claim)
	h.model.retract(h.now, c.modelCall)
}

func (h *history) compareLedger() {
	m, want := h.m, h.model
	if m.Lent() != want.ledger.lent || m.Back() != want.ledger.back || m.Joined() != want.ledger.joined {
		h.fail("lent %d, back %d, joined %d; model %+v", m.Lent(), m.Back(), m.Joined(), want.ledger)
	}
	if m.Slots() != want.slots() {
		h.fail("%d slots, model %d", m.Slots(), want.slots())
	}
	// No idle unit stays while others miss it, and nobody waits for what lies here.
	if want.ledger.returning && !want.ledger.away && want.idle() > 0 {
		h.fail("%d units lie idle although they are missed elsewhere", want.idle())
	}
	w := m.First()
	for _, mw := range want.line {
		if w == nil || w.Number() != mw.number || w.Ask() != mw.ask {
			h.fail("in line %+v, model %+v", w, mw)
		}
		w = w.Next()
	}
	if head := m.next(h.now); head != nil && head.until.After(h.now) {
		h.fail("somebody in line fits, and waits")
	}
}

// tellAlone is hearFromLedger on the machine alone.
func (h *history) tellAlone() {
	n := h.next(4)
	switch h.next(12) {
	case 0, 1, 2, 3:
		h.m.Feed(h.now, n)
	case 4:
		h.m.Take(h.now, n)
	case 5:
		h.m.Return(h.now, n < 2)
	case 6:
		h.m.Fetch(h.now)
	case 7:
		h.m.Answered(h.now, h.m.Joined())
	case 8:
		h.m.Renumber(h.now)
	case 9:
		h.m.Expire(h.now)
		if n == 0 {
			h.m.Lapse(h.now)
		}
	case 10:
		h.m.Renew(h.now)
	case 11:
		if n < 2 {
			h.m.Together(h.now)
		} else {
			h.m.Alone(h.now, n, n == 3)
		}
	}
}
