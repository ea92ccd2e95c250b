//go:build linux

package ops_test

import (
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestProxyProtocolOfHAProxy: HAProxy hands on connections, and Forebay knows who is at
// the other end of each, whatever he writes into his headers.
func TestProxyProtocolOfHAProxy(t *testing.T) {
	haproxy := need(t, "haproxy", "haproxy")
	b := newBackend(t)
	config := ""
	for _, c := range blocks(t, "yaml") {
		if strings.Contains(c, "proxy_protocol: true") {
			config = replace(t, c, "http://127.0.0.1:8000", b.URL)
			config = replace(t, config, "10.0.0.5", "127.0.0.1")
		}
	}
	f := serve(t, "listen: 127.0.0.1:0\nadmin: 127.0.0.1:0\n"+config)
	for _, version := range []string{"send-proxy", "send-proxy-v2"} {
		socket, address := bound(t)
		file := filepath.Join(t.TempDir(), "haproxy.cfg")
		writeFile(t, file, "global\n    maxconn 200\n\ndefaults\n    mode tcp\n    timeout client 60s\n    timeout connect 2s\n    timeout server 60s\n\n"+
			"listen web\n    bind fd@3\n    server forebay1 "+f.listen+" "+version+"\n")
		cmd := exec.Command(haproxy, "-db", "-f", file)
		cmd.ExtraFiles = []*os.File{socket}
		start(t, cmd)
		from := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 99)}}
		var got answer
		until(t, "HAProxy answers", func() (ok bool) {
			var err error
			got, err = try(from, "http://"+address+"/x", http.Header{"X-Forwarded-For": {"6.6.6.6"}})
			return err == nil && got.status == http.StatusOK
		})
		if seen := got.header.Get("X-Seen-For"); seen != "127.0.0.99" {
			t.Errorf("%s: the backend was told of %q", version, seen)
		}
	}
}
