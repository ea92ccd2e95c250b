//go:build unix

package clients

import (
	"bytes"
	"fmt"
	"net/http"
	"testing"

	"github.com/coder/websocket"
)

const sockets = `
upstream: %s
gates:
  pages: {max_in_flight: 1, streams: sockets}
  sockets: {max_in_flight: 1, refuse: {retry_after: 3s}}
routes:
  - {match: /, gate: pages}
`

// echo repeats every message until the client says goodbye.
func echo(w http.ResponseWriter, r *http.Request) {
	conn, err := websocket.Accept(w, r, nil)
	if err != nil {
		return // it has answered
	}
	defer conn.CloseNow()
	conn.SetReadLimit(-1)
	for {
		kind, message, err := conn.Read(r.Context())
		if err != nil {
			return
		}
		if conn.Write(r.Context(), kind, message) != nil {
			return
		}
	}
}

// TestWebSocket: messages of every size pass both ways, pings are answered and the goodbye is
// returned; a second socket is refused by an answer that its client can read; and the slot is
// the sockets' alone.
func TestWebSocket(t *testing.T) {
	p := start(t, fmt.Sprintf(sockets, serve(t, http.HandlerFunc(echo)).URL))
	ctx := within(t)
	url := "ws://" + p.data + "/ws"
	conn, _, err := websocket.Dial(ctx, url, &websocket.DialOptions{CompressionMode: websocket.CompressionContextTakeover})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.CloseNow()
	conn.SetReadLimit(-1)
	for _, message := range [][]byte{[]byte("hello"), {}, bytes.Repeat([]byte("fore\x00bay"), 200_000)} {
		if err := conn.Write(ctx, websocket.MessageBinary, message); err != nil {
			t.Fatal(err)
		}
		if kind, back, err := conn.Read(ctx); kind != websocket.MessageBinary || !bytes.Equal(back, message) {
			t.Errorf("%d bytes came back of %d, %v", len(back), len(message), err)
		}
	}
	p.inUse("sockets", 1)
	p.inUse("pages", 0)
	_, res, err := websocket.Dial(ctx, url, nil)
	if err == nil || res == nil || res.StatusCode != http.StatusServiceUnavailable || res.Header.Get("Retry-After") != "3" {
		t.Errorf("a second socket: %v, %v", res, err)
	}
	read := conn.CloseRead(ctx) // pings are answered while somebody reads
	if err := conn.Ping(ctx); err != nil {
		t.Errorf("a ping: %v", err)
	}
	if err := conn.Close(websocket.StatusNormalClosure, "bye"); err != nil {
		t.Errorf("the goodbye: %v", err)
	}
	<-read.Done()
	p.nothingLeft("sockets", "pages")
}
