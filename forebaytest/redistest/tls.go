package redistest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// certificates are what the servers of one test, and their callers, show each other.
type certificates struct {
	caFile, certFile, keyFile string // of the authority, of the servers
	roots                     *x509.CertPool
	caller                    tls.Certificate
}

// newCertificates makes an authority, and one certificate of it for the servers and
// one for their callers.
func newCertificates(t T) *certificates {
	t.Helper()
	dir := newDir(t)
	key := newKey(t)
	ca := template(1, "authority")
	ca.IsCA, ca.BasicConstraintsValid, ca.KeyUsage = true, true, x509.KeyUsageCertSign
	caDER := sign(t, ca, ca, key, key)
	authority, err := x509.ParseCertificate(caDER)
	if err != nil {
		t.Fatalf("redistest: %v", err)
	}
	c := &certificates{roots: x509.NewCertPool()}
	c.roots.AddCert(authority)
	c.caFile = writePEM(t, dir, "ca.crt", "CERTIFICATE", caDER)

	serverKey := newKey(t)
	c.certFile = writePEM(t, dir, "server.crt", "CERTIFICATE", sign(t, template(2, "server"), authority, serverKey, key))
	der, err := x509.MarshalPKCS8PrivateKey(serverKey)
	if err != nil {
		t.Fatalf("redistest: %v", err)
	}
	c.keyFile = writePEM(t, dir, "server.key", "PRIVATE KEY", der)

	callerKey := newKey(t)
	c.caller = tls.Certificate{Certificate: [][]byte{sign(t, template(3, "caller"), authority, callerKey, key)}, PrivateKey: callerKey}
	return c
}

// client returns how to call the servers: with the authority known, and with a
// certificate of one's own.
func (c *certificates) client() *tls.Config {
	return &tls.Config{RootCAs: c.roots, Certificates: []tls.Certificate{c.caller}, MinVersion: tls.VersionTLS12}
}

func newKey(t T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatalf("redistest: %v", err)
	}
	return key
}

// template is valid at any time: servers may have clocks of their own.
func template(serial int64, name string) *x509.Certificate {
	return &x509.Certificate{
		SerialNumber: big.NewInt(serial),
		Subject:      pkix.Name{CommonName: name},
		NotBefore:    time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC),
		NotAfter:     time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC),
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		IPAddresses:  []net.IP{net.IPv4(127, 0, 0, 1)},
		DNSNames:     []string{"localhost"},
	}
}

func sign(t T, cert, parent *x509.Certificate, key, by *ecdsa.PrivateKey) []byte {
	t.Helper()
	der, err := x509.CreateCertificate(rand.Reader, cert, parent, &key.PublicKey, by)
	if err != nil {
		t.Fatalf("redistest: %v", err)
	}
	return der
}

func writePEM(t T, dir, name, kind string, der []byte) string {
	t.Helper()
	file := filepath.Join(dir, name)
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		t.Fatalf("redistest: %v", err)
	}
	return file
}
