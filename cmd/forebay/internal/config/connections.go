package config

import "go.yaml.in/yaml/v4"

// connections reads the bounds of clients' connections.
func (d *decoder) connections(v value) {
	c := &d.config.Connections
	d.mapping(v, "connections", []key{
		{"max", func(v value) { c.Max, _ = d.number(v, 1, maxUnits) }},
		{"per_address", func(v value) { c.PerAddress, _ = d.number(v, 1, maxUnits) }},
	})
}

// tls reads the certificate with which requests come in encrypted.
func (d *decoder) tls(v value) {
	t := &TLS{dir: d.dir}
	var cert, private value
	path := func(into *string, at *value, example string) func(v value) {
		return func(v value) {
			if s, ok := d.text(v, "a path such as /etc/forebay/"+example); ok {
				*into, *at = s, v
			}
		}
	}
	before := len(d.problems)
	d.mapping(v, "tls", []key{
		{"cert_file", path(&t.CertFile, &cert, "server.pem")},
		{"key_file", path(&t.KeyFile, &private, "server.key")},
	})
	switch {
	case len(d.problems) > before || v.Kind != yaml.MappingNode:
	case cert.Node == nil || private.Node == nil:
		d.wrongValue(v, "write {cert_file: PATH, key_file: PATH}", "needs both cert_file and key_file")
	default:
		if _, err := t.Load(); err != nil {
			d.wrongValue(cert, "name a certificate in PEM and its key, both readable for this program", "cannot be used: %v", cause(err))
			return
		}
		d.config.TLS = t
	}
}
