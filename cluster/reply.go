package cluster

import (
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
	if err := u.end(); err != nil {
		return Reply{}, fmt.Errorf("cluster: a reply of the ledger is %q: %w", s, err)
	}
	return r, nil
}

func (u *unpacker) millis() time.Duration { return fromMillis(u.int64()) }
