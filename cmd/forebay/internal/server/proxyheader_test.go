package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/pires/go-proxyproto"
)

// raw sends bytes to the data port and returns everything that comes back until the
// end, and what ended it.
func (r *rig) raw(text string) (string, error) {
	r.Helper()
	conn, err := guarded(context.Background(), "tcp", strings.TrimPrefix(r.data, "http://"))
	if err != nil {
		r.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(patience))
	if _, err := io.WriteString(conn, text); err != nil {
		return "", err
	}
	got, err := io.ReadAll(conn)
	return string(got), err
}

// v2 is a header of version 2: the command, the transport, and source and destination.
func v2(command proxyproto.ProtocolVersionAndCommand, transport proxyproto.AddressFamilyAndProtocol, source, destination net.Addr) string {
	h := proxyproto.Header{Version: 2, Command: command, TransportProtocol: transport, SourceAddr: source, DestinationAddr: destination}
	b, err := h.Format()
	if err != nil {
		panic(err)
	}
	return string(b)
}

func tcp(s string) net.Addr { return net.TCPAddrFromAddrPort(netip.MustParseAddrPort(s)) }

const getXFF = "GET /x HTTP/1.1\r\nHost: h\r\nConnection: close\r\nX-Forwarded-For: 6.6.6.6\r\n\r\n"

// forwardedFor returns the X-Forwarded-For with which the backend was asked, empty if
// it was not.
func forwardedFor(answer string) string {
	head, body, _ := strings.Cut(answer, "\r\n\r\n")
	var headers http.Header
	if !strings.HasPrefix(head, "HTTP/1.1 200") || json.Unmarshal([]byte(body), &headers) != nil {
		return ""
	}
	return headers.Get("X-Forwarded-For")
}

const openAndShut = "gates: {a: {max_in_flight: 4}, shut: {max_in_flight: closed}}\nroutes: [{match: /, gate: a}, {match: /shut/, gate: shut}]\n"

// TestProxyHeaderOfATrustedPeer: the address in it is the caller's, and what that one
// claims about himself counts if he is trusted too.
func TestProxyHeaderOfATrustedPeer(t *testing.T) {
	r := start(t, "proxy_protocol: true\ntrusted_proxies: [127.0.0.1, 10.0.0.0/8]\n"+openAndShut)
	for name, c := range map[string]struct{ header, want string }{
		"v1":             {"PROXY TCP4 203.0.113.9 127.0.0.1 4711 80\r\n", "203.0.113.9"},
		"v1, IPv6":       {"PROXY TCP6 2001:db8::1 ::1 4711 80\r\n", "2001:db8::1"},
		"v1, unknown":    {"PROXY UNKNOWN\r\n", "6.6.6.6, 127.0.0.1"},
		"v2":             {v2(proxyproto.PROXY, proxyproto.TCPv4, tcp("203.0.113.9:4711"), tcp("127.0.0.1:80")), "203.0.113.9"},
		"v2, IPv6":       {v2(proxyproto.PROXY, proxyproto.TCPv6, tcp("[2001:db8::1]:4711"), tcp("[::1]:80")), "2001:db8::1"},
		"v2, mapped":     {v2(proxyproto.PROXY, proxyproto.TCPv6, tcp("[::ffff:203.0.113.9]:4711"), tcp("[::1]:80")), "203.0.113.9"},
		"v2, local":      {v2(proxyproto.LOCAL, proxyproto.UNSPEC, nil, nil), "6.6.6.6, 127.0.0.1"},
		"a proxy behind": {"PROXY TCP4 10.1.2.3 127.0.0.1 4711 80\r\n", "6.6.6.6, 10.1.2.3"},
	} {
		got, err := r.raw(c.header + getXFF)
		if for_ := forwardedFor(got); for_ != c.want || err != nil {
			t.Errorf("%s: X-Forwarded-For %q, %v; want %q\n%s", name, for_, err, c.want, got)
		}
	}
	r.logged(`"decision":"accepted"`, `"remote_ip":"203.0.113.0"`)
	r.logged(`"decision":"accepted"`, `"remote_ip":"2001:db8::"`)
}

// TestProxyHeaderIsRequiredOfATrustedPeer: of none, of half of one, of one that names a
// caller of another kind nothing gets to a gate, and the connection ends.
func TestProxyHeaderIsRequiredOfATrustedPeer(t *testing.T) {
	r := start(t, "proxy_protocol: true\ntrusted_proxies: [127.0.0.1]\ntimeouts: {read_header: 100ms}\n"+openAndShut)
	unix := &net.UnixAddr{Name: "/run/front.sock", Net: "unix"}
	for name, header := range map[string]string{
		"none":            "",
		"half of v1":      "PROXY TCP4 203.0.113.9 127",
		"half of v2":      v2(proxyproto.PROXY, proxyproto.TCPv4, tcp("203.0.113.9:4711"), tcp("127.0.0.1:80"))[:20],
		"of another kind": v2(proxyproto.PROXY, proxyproto.UnixStream, unix, unix),
		"a datagram": v2(proxyproto.PROXY, proxyproto.UDPv4,
			net.UDPAddrFromAddrPort(netip.MustParseAddrPort("203.0.113.9:4711")), net.UDPAddrFromAddrPort(netip.MustParseAddrPort("127.0.0.1:80"))),
		"two families": "PROXY TCP4 2001:db8::1 127.0.0.1 4711 80\r\n",
		"a zone":       "PROXY TCP6 fe80::1%eth0 ::1 4711 80\r\n",
		"half a zone":  "PROXY TCP6 fe80::1% ::1 4711 80\r\n",
		"bad port":     "PROXY TCP4 203.0.113.9 127.0.0.1 99999 80\r\n",
	} {
		request := getXFF
		if strings.HasPrefix(name, "half") {
			request = ""
		}
		if got, err := r.raw(header + request); forwardedFor(got) != "" || strings.Contains(got, " 200 ") || isTimeout(err) {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	if g := r.gateIs("a", 0, 0).Stats(); g.Accepted != 0 {
		t.Errorf("%d were accepted", g.Accepted)
	}
}

// TestProxyHeaderOfAStranger: it is a request line, and none that HTTP knows. Without
// it he is served as himself.
func TestProxyHeaderOfAStranger(t *testing.T) {
	r := start(t, "proxy_protocol: true\ntrusted_proxies: [10.0.0.0/8]\n"+openAndShut)
	for name, header := range map[string]string{
		"v1": "PROXY TCP4 203.0.113.9 127.0.0.1 4711 80\r\n",
		"v2": v2(proxyproto.PROXY, proxyproto.TCPv4, tcp("203.0.113.9:4711"), tcp("127.0.0.1:80")),
	} {
		if got, _ := r.raw(header + getXFF); !strings.HasPrefix(got, "HTTP/1.1 400 ") {
			t.Errorf("%s: %q", name, got)
		}
	}
	got, _ := r.raw(getXFF)
	if for_ := forwardedFor(got); for_ != "127.0.0.1" {
		t.Errorf("X-Forwarded-For %q, want the peer", for_)
	}
	if g := r.gateIs("a", 0, 0).Stats(); g.Accepted != 1 {
		t.Errorf("%d were accepted, want the one without a header", g.Accepted)
	}
	// A reload is in force for the next connection.
	r.reload("proxy_protocol: true\ntrusted_proxies: [127.0.0.1]\n" + openAndShut)
	got, _ = r.raw("PROXY TCP4 203.0.113.9 127.0.0.1 4711 80\r\n" + getXFF)
	if for_ := forwardedFor(got); for_ != "203.0.113.9" {
		t.Errorf("after the reload: X-Forwarded-For %q", for_)
	}
}

// TestProxyHeaderThatTrickles: who takes his time with it is ended, and holds up nobody
// meanwhile.
func TestProxyHeaderThatTrickles(t *testing.T) {
	r := start(t, "proxy_protocol: true\ntrusted_proxies: [127.0.0.1]\ntimeouts: {read_header: 300ms}\n"+openAndShut)
	half := v2(proxyproto.PROXY, proxyproto.TCPv4, tcp("203.0.113.9:4711"), tcp("127.0.0.1:80"))[:20]
	var slow []net.Conn
	for range 20 {
		conn, err := guarded(context.Background(), "tcp", strings.TrimPrefix(r.data, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		_, _ = io.WriteString(conn, half)
		slow = append(slow, conn)
	}
	if got, _ := r.raw("PROXY TCP4 203.0.113.9 127.0.0.1 4711 80\r\n" + getXFF); forwardedFor(got) == "" {
		t.Errorf("behind slow ones: %q", got)
	}
	for _, conn := range slow {
		_ = conn.SetDeadline(time.Now().Add(patience))
		if _, err := io.ReadAll(conn); isTimeout(err) {
			t.Errorf("still open: %v", err)
		}
	}
}

func isTimeout(err error) bool {
	var network net.Error
	return errors.As(err, &network) && network.Timeout()
}

// TestRJ02RefusalArrivesBehindAProxyHeader: to a client that writes everything before it
// reads. It takes a connection that can end its own side alone.
func TestRJ02RefusalArrivesBehindAProxyHeader(t *testing.T) {
	r := start(t, "proxy_protocol: true\ntrusted_proxies: [127.0.0.1]\n"+openAndShut)
	head := "PROXY TCP4 203.0.113.9 127.0.0.1 4711 80\r\nPOST /shut/ HTTP/1.1\r\nHost: h\r\nContent-Length: 8388608\r\n\r\n"
	got, err := r.raw(head + strings.Repeat("x", 8<<20))
	if !strings.HasPrefix(got, "HTTP/1.1 503 ") || err != nil {
		t.Errorf("%.100q, %v", got, err)
	}
	var conn net.Conn = headed{}
	if _, ok := conn.(interface{ CloseWrite() error }); !ok {
		t.Error("net/http cannot end the answers alone, and resets the connection")
	}
}

// FuzzProxyHeader: whatever a trusted peer sends, its address is that of a TCP
// connection, or its own; and what follows the header comes through byte for byte.
func FuzzProxyHeader(f *testing.F) {
	f.Add([]byte("PROXY TCP4 203.0.113.9 127.0.0.1 4711 80\r\n"), []byte("GET / HTTP/1.1\r\n\r\n"))
	f.Add([]byte("PROXY UNKNOWN\r\n"), []byte("x"))
	f.Add([]byte(v2(proxyproto.PROXY, proxyproto.TCPv6, tcp("[2001:db8::1]:4711"), tcp("[::1]:80"))), []byte("PROXY TCP4 6.6.6.6 6.6.6.6 1 1\r\n"))
	f.Add([]byte(v2(proxyproto.LOCAL, proxyproto.UNSPEC, nil, nil)), []byte(""))
	f.Add([]byte("\r\n\r\n\x00\r\nQUIT\n\x21\x31\x00\xd8"+strings.Repeat("/", 216)), []byte("x"))
	f.Add([]byte("GET / HTTP/1.1\r\n\r\n"), []byte(""))
	f.Fuzz(func(t *testing.T, header, rest []byte) {
		own := tcp("127.0.0.1:4711")
		conn := newHeaded(&played{Reader: io.MultiReader(bytes.NewReader(header), bytes.NewReader(rest)), remote: own}, time.Hour)
		addr := conn.RemoteAddr()
		if _, ok := addr.(*net.TCPAddr); !ok {
			t.Fatalf("%q: the caller is %T %v", header, addr, addr)
		}
		got, err := io.ReadAll(conn)
		sent := append(bytes.Clone(header), rest...)
		switch {
		case err != nil && (len(got) > 0 || addr != own):
			t.Errorf("%q: %v, but %q was read and the caller is %v", header, err, got, addr)
		case err == nil && (!bytes.HasSuffix(sent, got) || !startsProxied(sent)):
			t.Errorf("%q: %q was read", sent, got)
		case err == nil && bytes.HasPrefix(header, []byte("PROXY ")) && bytes.HasSuffix(header, []byte("\r\n")) &&
			bytes.Count(header, []byte("\n")) == 1 && !bytes.Equal(got, rest):
			t.Errorf("%q: %q came through as %q", header, rest, got)
		}
	})
}

func startsProxied(b []byte) bool {
	return bytes.HasPrefix(b, proxyproto.SIGV1) || bytes.HasPrefix(b, proxyproto.SIGV2)
}

// played is a connection that somebody has written to and left.
type played struct {
	io.Reader
	net.Conn
	remote net.Addr
}

func (p *played) Read(b []byte) (int, error)      { return p.Reader.Read(b) }
func (p *played) RemoteAddr() net.Addr            { return p.remote }
func (p *played) SetReadDeadline(time.Time) error { return nil }
