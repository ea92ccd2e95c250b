package proxy

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

var errUpgrade = errors.New("proxy: the upstream switched to a protocol that was not asked for")

// lingerTime is how long a WebSocket may go on after one side has closed: the
// other has to send its closing frame, and there is nothing else left to say.
const lingerTime = 5 * time.Second

// upgrade checks a 101 before ReverseProxy does, which forgets to close the
// upstream's connection when it does not like what it sees, and hands on all
// hop-by-hop headers.
func (x *exchange) upgrade(res *http.Response) error {
	protocol := res.Header.Get("Upgrade")
	if !strings.EqualFold(protocol, res.Request.Header.Get("Upgrade")) || protocol == "" {
		return errUpgrade
	}
	for _, line := range res.Header["Connection"] {
		for name := range strings.SplitSeq(line, ",") {
			res.Header.Del(strings.TrimSpace(name))
		}
	}
	for _, name := range []string{"Keep-Alive", "Proxy-Connection", "Te", "Trailer", "Transfer-Encoding", "Content-Length"} {
		res.Header.Del(name)
	}
	res.Header["Connection"], res.Header["Upgrade"] = []string{"Upgrade"}, []string{protocol}
	x.tunnel.upstream = res.Body
	if strings.EqualFold(protocol, "websocket") {
		x.tunnel.patience = x.handler.linger
	}
	return nil
}

// tunnel is an upgraded connection.
type tunnel struct {
	net.Conn               // to the client; nil: not upgraded
	early    *bufio.Reader // what the client sent before the switch
	upstream io.Closer
	patience time.Duration // once one side has closed; 0: no end
	toClient atomic.Int64

	mu     sync.Mutex // guards what follows
	linger *time.Timer
	over   bool
}

// open takes over the connection to the client.
func (t *tunnel) open(conn net.Conn, early *bufio.Reader) net.Conn {
	t.Conn, t.early = conn, early
	return t
}

// Read reads what the client sends, first what net/http had read ahead of the
// switch.
func (t *tunnel) Read(p []byte) (int, error) {
	if n := t.early.Buffered(); n > 0 {
		return t.early.Read(p[:min(n, len(p))])
	}
	n, err := t.Conn.Read(p)
	if err != nil {
		t.oneSideClosed()
	}
	return n, err
}

// Write writes to the client.
func (t *tunnel) Write(p []byte) (int, error) {
	n, err := t.Conn.Write(p)
	t.toClient.Add(int64(n))
	return n, err
}

// CloseWrite tells the client that the upstream has closed.
func (t *tunnel) CloseWrite() error {
	t.oneSideClosed()
	return closeWrite(t.Conn)
}

// oneSideClosed bounds what is left of a WebSocket. In other protocols one side
// may well be silent for as long as the other has something to say.
func (t *tunnel) oneSideClosed() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.patience > 0 && !t.over && t.linger == nil {
		t.linger = time.AfterFunc(t.patience, func() {
			_ = t.Conn.Close()
			_ = t.upstream.Close()
		})
	}
}

// shut ends both sides. They are closed already, unless the switch failed half
// way.
func (t *tunnel) shut() {
	t.mu.Lock()
	t.over = true
	if t.linger != nil {
		t.linger.Stop()
	}
	t.mu.Unlock()
	if t.upstream != nil {
		//mutate:equivalent ReverseProxy closes it as well, a moment later
		_ = t.upstream.Close()
	}
}
