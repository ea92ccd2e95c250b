package config

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// writeCertificate writes a certificate of that serial number, and its key.
func writeCertificate(t *testing.T, dir string, serial int64) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(serial), NotAfter: time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for name, block := range map[string]*pem.Block{"c.pem": {Type: "CERTIFICATE", Bytes: cert}, "c.key": {Type: "PRIVATE KEY", Bytes: private}} {
		if err := os.WriteFile(filepath.Join(dir, name), pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// TestRedisTLS: paths stand for files beside the configuration, and our own certificate
// is the one that is there as a connection is made.
func TestRedisTLS(t *testing.T) {
	dir := t.TempDir()
	writeCertificate(t, dir, 1)
	authority, err := os.ReadFile("testdata/redis-ca.pem")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "ca.pem"), authority, 0o600); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "forebay.yaml")
	text := small + "cluster: {redis: rediss://127.0.0.1, gates: [a], tls: {ca_file: ca.pem, cert_file: c.pem, key_file: c.key}}\n"
	parse := func() *RedisTLS {
		t.Helper()
		c, err := Parse(file, []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return c.Cluster.TLS
	}
	read := parse()
	client := read.Client()
	if client.RootCAs == nil || client.InsecureSkipVerify {
		t.Errorf("it trusts %v, want the authority in the file", client.RootCAs)
	}
	for serial := int64(1); serial <= 2; serial++ {
		writeCertificate(t, dir, serial)
		pair, err := client.GetClientCertificate(&tls.CertificateRequestInfo{})
		if err != nil || pair.Leaf.SerialNumber.Int64() != serial {
			t.Errorf("certificate %d: %v, %v", serial, pair, err)
		}
	}
	if !read.Same(parse()) || read.Same(nil) {
		t.Error("the same with another certificate is not the same, or the same as nothing")
	}
	if err := os.WriteFile(filepath.Join(dir, "ca.pem"), append(authority, authority...), 0o600); err != nil {
		t.Fatal(err)
	}
	if read.Same(parse()) {
		t.Error("with other authorities it is the same")
	}
}

// TestNoRedisTLS: without the key, what the URL says is all.
func TestNoRedisTLS(t *testing.T) {
	c := mustParse(t, fmt.Sprintf(sharing, "rediss://127.0.0.1"))
	if c.Cluster.TLS.Client() != nil || !c.Cluster.TLS.Same(nil) {
		t.Errorf("TLS is %v", c.Cluster.TLS)
	}
}
