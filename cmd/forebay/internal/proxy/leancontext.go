package proxy

import (
	"context"
	"net/http"
	"net/url"
	"sync"
	"time"
)

// incoming is a request that the lean server answers, with all that it consists of. It is
// used again for the next one where nobody can have kept any of it: a request that goes
// to the upstream may be in somebody's hands for longer than its handler runs, one that
// is refused is not.
type incoming struct {
	*http.Request
	context requestContext
	empty   *http.Request // what Request is made of to be used again; nil: it was not yet
	url     url.URL
	values  [16]string // of headers
}

var emptyRequest = &http.Request{Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Body: http.NoBody}

func newIncoming(connection context.Context) *incoming {
	in := &incoming{context: requestContext{connection: connection}}
	in.Request = emptyRequest.WithContext(&in.context)
	in.URL, in.Header = &in.url, make(http.Header, 8)
	return in
}

// again makes it as new. It must have been spent.
func (in *incoming) again() {
	header := in.Header
	clear(header)
	if in.empty == nil {
		in.empty = emptyRequest.WithContext(&in.context)
	}
	in.url = url.URL{}
	*in.Request = *in.empty
	in.URL, in.Header = &in.url, header
	in.context.isKnown, in.context.isSpent = false, false
}

// requestContext is the context of such a request. It ends with the request, or when the
// client leaves; the connection tells it when its own ends. One of package context costs
// more, of which a request that is refused uses nothing.
type requestContext struct {
	connection context.Context
	caller     caller
	isKnown    bool // the caller is
	id         [1]string
	isSpent    bool // nobody keeps anything of the request who does not wait for its end

	mu    sync.Mutex // guards what follows
	err   error
	done  chan struct{} // nil: nobody has asked
	after []func()
}

// Deadline returns the connection's.
func (c *requestContext) Deadline() (time.Time, bool) { return c.connection.Deadline() }

// Value finds who has sent the request, and what the connection knows.
func (c *requestContext) Value(key any) any {
	if key == (callerKey{}) && c.isKnown {
		return &c.caller
	}
	return c.connection.Value(key)
}

// Err returns context.Canceled when it has ended.
func (c *requestContext) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// Done is closed at its end.
func (c *requestContext) Done() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.done == nil {
		c.done = make(chan struct{})
		if c.err != nil {
			close(c.done)
		}
	}
	return c.done
}

// AfterFunc calls f in a goroutine at its end, unless stop comes before. By it package
// context makes contexts of this one without a goroutine for each.
func (c *requestContext) AfterFunc(f func()) (stop func() bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		go f()
		return func() bool { return false }
	}
	n := len(c.after)
	c.after = append(c.after, f)
	return func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		waits := c.err == nil && c.after[n] != nil
		if waits {
			c.after[n] = nil
		}
		return waits
	}
}

// spend ends it, unless nobody waits for that who is still there: then it can be used
// again. Whoever goes on beside a handler has made a context of this one, or a call after
// it, as both transports do.
func (c *requestContext) spend() (isSpent bool) {
	c.mu.Lock()
	isSpent = c.isSpent && c.err == nil && len(c.after) == 0
	c.mu.Unlock()
	if !isSpent {
		c.end()
	}
	return isSpent
}

// end ends it.
func (c *requestContext) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return
	}
	c.err = context.Canceled
	if c.done != nil {
		close(c.done)
	}
	for _, f := range c.after {
		if f != nil {
			go f()
		}
	}
	c.after = nil
}
