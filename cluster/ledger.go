package cluster

import "time"

// Ledger says who holds how many units of one gate's limit, and who is next in line.
// It is the readable twin of ledger.lua: the same requests get the same answers, and
// Fields is what the script keeps in its hash. The zero value has no state yet, as a
// store without the key. A Ledger is not safe for concurrent use.
type Ledger struct {
	key      string
	epoch    uint64 // 0: there is no state
	identity string // of the server when the epoch began, "" if not known

	clock, wall int64 // the ledger's own and the server's, in ms, at the last step
	origin      int64 // by the server's clock: where elapsed counts from
	learn       int64 // by its own clock: nothing is lent before
	cold        cold
	renewed     int64 // by the server's clock: when the key's life was last renewed

	override override
	limit    int // in force
	low      int // the lowest that an instance is configured with

	held, inUse, waiting int // over all instances
	withheld             int // what is kept free for the shares of instances that are missed
	shares               int // of all instances that have theirs withheld, also while they speak
	reclaimed, lostTotal uint64
	top                  uint64 // no instance was ever granted more in this epoch
	fences               uint64 // given out in this epoch

	names   []string // of the members, in the order in which they came
	members map[string]*member
	nearest int64  // by its own clock: nobody is given up or forgotten before
	doubt   int64  // by elapsed: nobody else is missed before
	calm    string // who was told that nobody else waits, and not yet otherwise; "*": several

	spoilt bool // there was state, and it is lost
	line   line
	used   []bool // by number, from 1: whether the slot is held
}

// Server is what the ledger learns of the server on which it lives.
type Server struct {
	// Wall is the server's clock. It may jump.
	Wall time.Time
	// Identity changes whenever the server may have other data. Empty: not known.
	Identity string
	// Uptime is for how long the server surely has been the one to ask. Below 0: not known.
	Uptime time.Duration
	// Subscribers returns how many are subscribed to a channel. Nil: not known.
	Subscribers func(channel string) int
}

// step is one exchange under way.
type step struct {
	*Ledger
	server   Server
	r        *Request
	lease    int64   // of r, in ms
	m        *member // who speaks; nil if it leaves
	newer    bool    // the request says something that the ledger has not heard
	joined   bool
	eased    bool // what was withheld went to whom it was withheld for
	share    int  // as the reply says
	lost     int
	messages []Message
}

// Exchange is one step of the ledger.
func (l *Ledger) Exchange(server Server, r *Request) (Reply, []Message) {
	r = r.sane()
	s := &step{Ledger: l, server: server, r: r, lease: inMillis(r.Lease)}
	s.advance()
	s.count()
	s.recognise()
	s.limits()
	if s.newer && s.m != nil {
		before := s.release()
		s.figures()
		s.standing()
		s.withhold(before)
		s.cover()
	}
	s.lend()
	if s.newer && s.m != nil {
		s.arrived()
		s.nearest = min(s.nearest, s.m.due())
	}
	if s.eased {
		s.line.fromTheFront()
	}
	s.tidy()
	if passed := s.wall - s.renewed; passed >= renewAfter || passed < 0 {
		s.renewed = s.wall
	}
	return s.reply(), s.messages
}

// Spoil makes the ledger as if what is kept of it could not be read: it is lost.
func (l *Ledger) Spoil() { *l = Ledger{spoilt: true} }

func (s *step) publish(channel, text string) {
	s.messages = append(s.messages, Message{Channel: channel, Text: text})
}

func (l *Ledger) learning() bool { return l.clock < l.learn }

// free returns the units that may be lent; below 0 if more than the limit is out.
func (l *Ledger) free() int { return l.limit - l.held - l.withheld }

func (s *step) reply() Reply {
	r := Reply{
		Epoch: s.epoch, Lost: s.lost,
		Limit: s.limit, Override: s.override.shown(s.wall),
		Held: s.held, InUse: s.inUse, Waiting: s.waiting, Instances: len(s.names),
		Share: s.share, Clock: s.elapsed(),
		Learning: fromMillis(max(0, s.learn-s.clock)), Contended: s.contended(),
		Reclaimed: s.reclaimed, LostTotal: s.lostTotal,
	}
	m := s.m
	if m == nil || !s.newer {
		r.Share = s.shareNow()
	}
	if m == nil {
		return r
	}
	r.Granted, r.Returned, r.Heard, r.Queued = m.granted, m.returned, m.heard, m.queued
	for _, slot := range m.slots {
		r.Slots = append(r.Slots, slot.Slot)
	}
	if s.newer {
		m.told = m.granted
		s.hush(r.Contended)
	}
	return r
}

// contended says whether whoever speaks should give back what it can.
func (s *step) contended() bool {
	own := 0
	if s.m != nil {
		own = s.m.queued
	}
	return s.queued() > own || s.free() < 0
}
