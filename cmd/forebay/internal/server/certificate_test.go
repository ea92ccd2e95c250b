package server

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// writeCertificate writes a certificate of that serial number, and its key. Whoever
// reads in between finds two that do not fit.
func writeCertificate(t testing.TB, dir string, serial int64) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(serial), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for name, b := range map[string]*pem.Block{"server.pem": {Type: "CERTIFICATE", Bytes: cert}, "server.key": {Type: "PRIVATE KEY", Bytes: private}} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path+".new", pem.EncodeToMemory(b), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(path+".new", path); err != nil {
			t.Fatal(err)
		}
	}
}

// secure is a client of one protocol, and of one connection for each request.
func secure(http2 bool) *http.Transport {
	tr := &http.Transport{DialContext: guarded, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true, Protocols: new(http.Protocols)}
	tr.Protocols.SetHTTP1(!http2)
	tr.Protocols.SetHTTP2(http2)
	return tr
}

// overTLS asks once and returns the serial number of what was shown, and the answer.
func (r *rig) overTLS(http2 bool, headers ...string) (serial int64, body string) {
	r.Helper()
	tr := secure(http2)
	defer tr.CloseIdleConnections()
	req := mustRequest(strings.Replace(r.data, "http://", "https://", 1) + "/x")
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	res, err := tr.RoundTrip(req)
	if err != nil {
		r.Error(err)
		return 0, ""
	}
	defer res.Body.Close()
	text, _ := io.ReadAll(res.Body)
	if want := map[bool]int{false: 1, true: 2}[http2]; res.StatusCode != 200 || res.ProtoMajor != want {
		r.Errorf("%s over %s", res.Status, res.Proto)
	}
	return res.TLS.PeerCertificates[0].SerialNumber.Int64(), string(text)
}

// TestTLS: requests come in encrypted, over both protocols, and the upstream is told.
func TestTLS(t *testing.T) {
	dir := t.TempDir()
	writeCertificate(t, dir, 1)
	config := fmt.Sprintf("tls: {cert_file: %s/server.pem, key_file: %s/server.key}\n", dir, dir) +
		"gates: {a: {max_in_flight: 1}}\nroutes: [{match: /, gate: a}]\n"
	r := start(t, config)
	for _, http2 := range []bool{false, true} {
		if serial, body := r.overTLS(http2); serial != 1 || !strings.Contains(body, `"X-Forwarded-Proto":["https"]`) {
			t.Errorf("HTTP/2 %v: certificate %d, %s", http2, serial, body)
		}
	}
	if got, _ := r.raw("GET /x HTTP/1.1\r\nHost: h\r\n\r\n"); !strings.HasPrefix(got, "HTTP/1.0 400 ") {
		t.Errorf("in the clear: %q", got)
	}
	// Other certificates are used once they are there; until they are whole, the one before.
	writeCertificate(t, dir, 2)
	eventually(t, "the second certificate", func() bool { serial, _ := r.overTLS(false); return serial == 2 })
	if err := os.WriteFile(filepath.Join(dir, "server.key"), []byte("half a ke"), 0o600); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a look at the broken one", func() bool {
		if serial, _ := r.overTLS(false); serial != 2 {
			t.Errorf("certificate %d", serial)
		}
		text, _ := os.ReadFile(r.log)
		return strings.Contains(string(text), "the one before stays in force")
	})
	if err := r.Reload(t.Context()); err == nil {
		t.Error("a reload takes files that cannot be used")
	}
	writeCertificate(t, dir, 3)
	eventually(t, "the third certificate", func() bool { serial, _ := r.overTLS(true); return serial == 3 })
	r.write(config[strings.IndexByte(config, '\n')+1:])
	if err := r.Reload(t.Context()); err == nil || !strings.Contains(err.Error(), "tls") {
		t.Errorf("a reload that ends TLS: %v", err)
	}
}

// TestTLSBehindAProxyHeader: the header comes first, in the clear.
func TestTLSBehindAProxyHeader(t *testing.T) {
	dir := t.TempDir()
	writeCertificate(t, dir, 1)
	r := start(t, fmt.Sprintf("tls: {cert_file: %s/server.pem, key_file: %s/server.key}\n", dir, dir)+
		"proxy_protocol: true\ntrusted_proxies: [127.0.0.1]\ngates: {a: {max_in_flight: 1}}\nroutes: [{match: /, gate: a}]\n")
	conn := r.connect("")
	fmt.Fprint(conn, "PROXY TCP4 203.0.113.9 127.0.0.1 4711 443\r\n")
	client := tls.Client(conn, &tls.Config{InsecureSkipVerify: true})
	fmt.Fprint(client, getXFF)
	got, _ := io.ReadAll(client)
	if for_ := forwardedFor(string(got)); for_ != "203.0.113.9" {
		t.Errorf("X-Forwarded-For %q: %s", for_, got)
	}
	_ = client.Close()
	r.connections(0)
}
