package cluster

import (
	"errors"
	"fmt"
	"time"
)

// replyParts are the values in a reply.
const replyParts = 21

// ParseReply reads the answer of the [Script].
func ParseReply(s string) (Reply, error) {
	u := unpack(s)
	if n := u.list(); u.err == nil && n != replyParts {
		u.err = fmt.Errorf("it has %d parts; this program knows %d", n, replyParts)
	}
	r := Reply{
		Epoch: u.uint(), Granted: u.uint(), Returned: u.uint(),
		Heard: u.uint(), Queued: u.int(), Lost: u.int(),
		Limit:    u.int(),
		Override: Override{Version: u.uint(), Limit: u.int(), For: u.millis()},
		Held:     u.int(), InUse: u.int(), Waiting: u.int(), Instances: u.int(), Share: u.int(),
		Contended: u.flag(), Learning: u.millis(),
		Reclaimed: u.uint(), LostTotal: u.uint(),
		Clock: u.int64(), Slots: u.slots(),
	}
	err := u.end()
	if err == nil && !r.possible() {
		err = errors.New("some of its figures cannot be")
	}
	if err != nil {
		return Reply{}, fmt.Errorf("cluster: a reply of the ledger is %q: %w", s, err)
	}
	return r, nil
}

// maxFigure is above all that the ledger counts: its language has no greater integers.
const maxFigure = 1 << 53

// possible reports whether a ledger that keeps its rules can have said it. What is kept
// of one may be damaged.
func (r *Reply) possible() bool {
	return r.Epoch > 0 && r.Epoch < maxFigure && r.Granted < maxFigure && r.Heard < maxFigure &&
		r.Returned <= r.Granted && r.Granted-r.Returned <= maxUnits &&
		r.Limit >= 0 && r.Limit <= maxUnits && r.Share >= 0 && r.Share <= maxUnits &&
		min(r.Queued, r.Lost, r.Held, r.InUse, r.Waiting, r.Instances) >= 0 && r.Learning >= 0
}

func (u *unpacker) millis() time.Duration { return fromMillis(u.int64()) }
