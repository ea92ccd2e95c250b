package config

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"

	"go.yaml.in/yaml/v4"
)

// admin reads an address, or a mapping with one and a token file.
func (d *decoder) admin(v value) {
	a := &d.config.Admin
	if v.Kind == yaml.ScalarNode {
		a.Address = d.address(v, a.Address, DefaultAdmin)
		return
	}
	d.mapping(v, "admin", []key{
		{"listen", func(v value) { a.Address = d.address(v, a.Address, DefaultAdmin) }},
		{"token_file", func(v value) {
			if s, ok := d.text(v, "a path such as /etc/forebay/admin.token"); ok {
				a.TokenFile = s // named, if not good: an open port is not the mistake then
				d.readToken(v)
			}
		}},
	})
}

// readToken reads the token.
func (d *decoder) readToken(v value) {
	const remedy = "write a random line into it, readable for this program alone: openssl rand -hex 32"
	if token, ok := d.secretFile(v, remedy); ok {
		d.config.Admin.Token = token
	}
}

const maxSecret = 4096

// secretFile reads the one line of the file that v names, once: what counts is the file
// of the moment in which the configuration was read, so that a reload exchanges both
// together. What is in it is never shown.
func (d *decoder) secretFile(v value, remedy string) (line string, ok bool) {
	text, ok := d.fileNamed(v, maxSecret, remedy)
	if !ok {
		return "", false
	}
	line = strings.TrimSpace(string(text))
	if strings.ContainsFunc(line, func(r rune) bool { return r <= ' ' || r > '~' }) {
		d.wrongValue(v, remedy, "names a file with more in it than that: a space, a second line, a character beyond ASCII")
		return "", false
	}
	return line, true
}

// fileNamed reads the file that v names, of which there must be something, and at most
// most bytes.
func (d *decoder) fileNamed(v value, most int, remedy string) (text []byte, ok bool) {
	path := within(d.dir, v.Value)
	info, err := os.Stat(path)
	switch {
	case err != nil:
		d.wrongValue(v, "create it, or correct the path", "cannot be read: %v", cause(err))
		return nil, false
	case !info.Mode().IsRegular():
		d.wrongValue(v, "name a file", "is %s, no regular file", shorten(v.Value))
		return nil, false
	}
	f, err := os.Open(path)
	if err != nil {
		d.wrongValue(v, "let this program's user read it", "cannot be read: %v", cause(err))
		return nil, false
	}
	defer f.Close()
	text, err = io.ReadAll(io.LimitReader(f, int64(most)+1))
	switch {
	case err != nil:
		d.wrongValue(v, "let this program's user read it", "cannot be read: %v", cause(err))
	case len(bytes.TrimSpace(text)) == 0:
		d.wrongValue(v, remedy, "names an empty file")
	case len(text) > most:
		d.wrongValue(v, remedy, "names a file of more than %d bytes", most)
	default:
		return text, true
	}
	return nil, false
}

// within returns where a path is that a file of the directory names.
func within(dir, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(dir, path)
}

// cause is an error without the path, which the message has anyway.
func cause(err error) error {
	if e, ok := err.(*os.PathError); ok {
		return fmt.Errorf("%s: %w", filepath.Base(e.Path), e.Err)
	}
	return err
}

// Loopback tells whether only this machine reaches an address as in [Listen]: a
// Unix socket, localhost, 127.0.0.0/8 or ::1.
func Loopback(address string) bool {
	if strings.HasPrefix(address, "unix:") {
		return true
	}
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.Unmap().IsLoopback()
}

// checkAddresses finds listeners that are in each other's way, or open to strangers.
func (d *decoder) checkAddresses() {
	c := d.config
	admin := c.at["admin.listen"]
	if admin == (Pos{}) {
		admin = c.at["admin"]
	}
	listen := c.at["listen"]
	if admin == (Pos{}) && listen == (Pos{}) {
		admin = Pos{1, 1}
	}
	if sameAddress(c.Listen.Address, c.Admin.Address) {
		at := admin
		if at == (Pos{}) {
			at = listen
		}
		d.wrongKey("admin", at, fmt.Sprintf("listen is %s and admin is %s, and both cannot be had", c.Listen.Address, c.Admin.Address), "give admin a port of its own, such as "+DefaultAdmin)
	}
	if !Loopback(c.Admin.Address) && c.Admin.TokenFile == "" {
		remedy := "write admin: {listen: " + c.Admin.Address + ", token_file: PATH}, or listen on 127.0.0.1"
		if d.flags {
			remedy = "listen on 127.0.0.1; a token takes a file: admin: {listen: " + c.Admin.Address + ", token_file: PATH}"
		}
		d.wrongKey("admin", admin, fmt.Sprintf("admin is open to strangers at %s: whoever reaches it can close gates", c.Admin.Address), remedy)
	}
	d.checkLoop()
}

// checkLoop finds an upstream that is this program itself.
func (d *decoder) checkLoop() {
	u := d.config.Upstream
	if u == nil {
		return
	}
	target := u.Host
	switch {
	case u.Scheme == "unix":
		target = "unix:" + u.Path
	case u.Port() == "" && u.Scheme == "http":
		target = net.JoinHostPort(u.Hostname(), "80")
	}
	for _, l := range []struct{ name, address string }{{"listen", d.config.Listen.Address}, {"admin", d.config.Admin.Address}} {
		if (Loopback(target) || target == l.address) && sameAddress(l.address, target) {
			d.wrongKey("upstream", d.config.at["upstream"], fmt.Sprintf("upstream is %s, where %s is: it would ask itself", u, l.name), "name the port of what stands behind")
		}
	}
}

// sameAddress tells whether two listeners cannot be had together.
func sameAddress(a, b string) bool {
	hostA, portA, errA := net.SplitHostPort(a)
	hostB, portB, errB := net.SplitHostPort(b)
	if strings.HasPrefix(a, "unix:") || strings.HasPrefix(b, "unix:") || errA != nil || errB != nil {
		return a == b
	}
	if portA != portB || portA == "0" {
		return false
	}
	return everyHost(hostA) || everyHost(hostB) || plainHost(hostA) == plainHost(hostB)
}

func everyHost(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "" || err == nil && ip.IsUnspecified()
}

func plainHost(host string) string {
	if host == "localhost" {
		return "127.0.0.1"
	}
	if ip, err := netip.ParseAddr(host); err == nil {
		return ip.Unmap().String()
	}
	return host
}
