package cluster

// maxChanges is how many changes wait to be reported. If there are more, whoever is told
// takes too long, and learns of the last ones by [Cluster]'s statistics.
const maxChanges = 64

// changed has a change reported, without waiting for anything.
func (c *Cluster) changed(change Change) {
	select {
	case c.changes <- change:
	default: // nobody wants to know, or too many wait
	}
}

// report tells of changes, one after the other.
func (c *Cluster) report() {
	for {
		select {
		case change := <-c.changes:
			c.config.Changed(change)
		case <-c.ctx.Done():
			return
		}
	}
}
