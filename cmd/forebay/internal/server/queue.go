package server

// connQueue is a line of connections, in the order in which they came into it. To come
// into it costs no allocation, as it would in a container/list with every request. The
// zero value is empty.
type connQueue struct {
	first, last *conn
	size        int
}

// push puts c, which is in no line, at the end.
func (q *connQueue) push(c *conn) {
	c.in, c.before = q, q.last
	if q.last != nil {
		q.last.behind = c
	} else {
		q.first = c
	}
	q.last = c
	q.size++
}

// remove takes c, which is in this line, out of it.
func (q *connQueue) remove(c *conn) {
	if c.before != nil {
		c.before.behind = c.behind
	} else {
		q.first = c.behind
	}
	if c.behind != nil {
		c.behind.before = c.before
	} else {
		q.last = c.before
	}
	c.in, c.before, c.behind = nil, nil, nil
	q.size--
}
