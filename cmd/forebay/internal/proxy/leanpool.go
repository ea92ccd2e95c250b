package proxy

import (
	"slices"
	"sync"
	"time"
)

// idlePool are the connections that wait for the next request, the one used last at the
// end.
type idlePool struct {
	most     int
	patience time.Duration // how long one may lie idle

	mu    sync.Mutex // guards what follows
	conns []*leanConn
	alarm *time.Timer // rings when the first may have waited long enough; nil: nobody waits
}

// get takes the connection that was used last; nil: there is none.
func (p *idlePool) get() *leanConn {
	p.mu.Lock()
	defer p.mu.Unlock()
	last := len(p.conns) - 1
	if last < 0 {
		return nil
	}
	c := p.conns[last]
	p.conns[last] = nil
	p.conns = p.conns[:last]
	return c
}

// put keeps a connection, or closes it where there are enough.
func (p *idlePool) put(c *leanConn) {
	c.since = clock()
	p.mu.Lock()
	full := len(p.conns) >= p.most
	if !full {
		p.conns = append(p.conns, c)
		if p.alarm == nil {
			p.alarm = time.AfterFunc(p.patience, p.expire)
		}
	}
	p.mu.Unlock()
	if full {
		_ = c.Close()
	}
}

// expire closes the connections that have lain idle for too long.
func (p *idlePool) expire() {
	p.mu.Lock()
	before := clock().Add(-p.patience)
	n := slices.IndexFunc(p.conns, func(c *leanConn) bool { return c.since.After(before) })
	if n < 0 {
		n = len(p.conns)
	}
	old := slices.Clone(p.conns[:n])
	p.conns = slices.Delete(p.conns, 0, n)
	if len(p.conns) > 0 {
		p.alarm.Reset(p.conns[0].since.Sub(before))
	} else {
		p.alarm = nil
	}
	p.mu.Unlock()
	closeIdle(old)
}

// close closes them all. Those that come back later are kept for as long as ever.
func (p *idlePool) close() {
	p.mu.Lock()
	all := p.conns
	p.conns = nil
	if p.alarm != nil && p.alarm.Stop() {
		p.alarm = nil
	}
	p.mu.Unlock()
	closeIdle(all)
}

func closeIdle(conns []*leanConn) {
	for _, c := range conns {
		_ = c.Close()
	}
}
