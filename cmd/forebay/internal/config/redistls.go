package config

import (
	"crypto/tls"
	"crypto/x509"
	"strings"

	"go.yaml.in/yaml/v4"
)

// RedisTLS is whom this program trusts on the way to Redis and its Sentinels, and who
// it is itself there. The zero value trusts the authorities of the machine, and shows
// nothing.
type RedisTLS struct {
	CAFile            string // as written; empty: the authorities of the machine
	CertFile, KeyFile string // as written; empty: no certificate

	authorities string // the content of CAFile
	dir         string // against which relative paths are meant
}

// Same reports whether both mean the same, the authorities' certificates included. Our
// own certificate may be another by now: it is read as it is shown.
func (t *RedisTLS) Same(other *RedisTLS) bool {
	a, b := t.orZero(), other.orZero()
	a.dir, b.dir = "", ""
	return a == b
}

func (t *RedisTLS) orZero() RedisTLS {
	if t == nil {
		return RedisTLS{}
	}
	return *t
}

// Client returns how to call the servers; nil for nil. Our own certificate is read anew
// for each connection, since one that is good for a day is replaced while this program
// runs.
func (t *RedisTLS) Client() *tls.Config {
	if t == nil {
		return nil
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if t.authorities != "" {
		c.RootCAs = x509.NewCertPool()
		c.RootCAs.AppendCertsFromPEM([]byte(t.authorities))
	}
	if t.CertFile != "" {
		c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			pair, err := t.pair()
			return &pair, err
		}
	}
	return c
}

func (t *RedisTLS) pair() (tls.Certificate, error) {
	return tls.LoadX509KeyPair(within(t.dir, t.CertFile), within(t.dir, t.KeyFile))
}

// String is t as a file has it.
func (t *RedisTLS) String() string {
	var parts []string
	for _, p := range []struct{ name, file string }{{"ca_file", t.CAFile}, {"cert_file", t.CertFile}, {"key_file", t.KeyFile}} {
		if p.file != "" {
			parts = append(parts, p.name+": "+quote(p.file))
		}
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

// maxAuthorities bounds a file of certificates; that of a whole machine has 250 KiB.
const maxAuthorities = 1 << 20

// tls reads whom to trust, and who we are.
func (r *clusterReader) tls(v value) *RedisTLS {
	t := &RedisTLS{dir: r.dir}
	var ca, cert, private value
	path := func(into *string, at *value, example string) func(v value) {
		return func(v value) {
			if s, ok := r.text(v, "a path such as /etc/forebay/"+example); ok {
				*into, *at = s, v
			}
		}
	}
	there := r.mapping(v, "cluster.tls", []key{
		{"ca_file", path(&t.CAFile, &ca, "redis-ca.pem")},
		{"cert_file", path(&t.CertFile, &cert, "redis.pem")},
		{"key_file", path(&t.KeyFile, &private, "redis.key")},
	})
	if v.Kind == yaml.MappingNode && len(v.Content) == 0 {
		r.wrongValue(v, mappingRemedy("cluster.tls"), "is empty")
	}
	if ca.Node != nil {
		r.authorities(ca, t)
	}
	_, hasCert := there["cert_file"]
	_, hasKey := there["key_file"]
	const both = "write cert_file and key_file, or neither"
	switch {
	case cert.Node != nil && private.Node != nil:
		if _, err := t.pair(); err != nil {
			r.wrongValue(cert, "name a certificate in PEM and its key, both readable for this program", "cannot be used: %v", cause(err))
		}
	case cert.Node != nil && !hasKey:
		r.wrongValue(cert, both, "is given without key_file")
	case private.Node != nil && !hasCert:
		r.wrongValue(private, both, "is given without cert_file")
	}
	return t
}

// authorities reads the certificates of those whom to trust, once.
func (r *clusterReader) authorities(v value, t *RedisTLS) {
	const remedy = "name a file with the certificate, in PEM, of whoever signed that of Redis"
	text, ok := r.fileNamed(v, maxAuthorities, remedy)
	switch {
	case !ok:
	case !x509.NewCertPool().AppendCertsFromPEM(text):
		r.wrongValue(v, remedy, "names a file without a certificate")
	default:
		t.authorities = string(text)
	}
}
